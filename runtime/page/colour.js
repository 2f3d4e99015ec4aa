// colour.js - code into pieces of a kind: comments, strings, numbers, words of the language. One
// rough rule for each family of languages; a piece that is wrong has the wrong colour and nothing
// else.

const COLOUR_MAX = 100000; // letters; longer code stays plain

// names: what follows a fence. comment: a pattern. words: those of the language that stand out.
const FAMILIES = [
  {
    names:
      "c h cc cpp c++ cuda metal java js javascript ts typescript go rust rs swift kotlin cs " +
      "csharp php json css",
    comment: "\\/\\/[^\\n]*|\\/\\*[^]*?(?:\\*\\/|$)",
    words: "async auto await bool break case catch char class const continue default delete do " +
      "double else enum export extends extern false final finally float fn for function if impl " +
      "import in inline int interface let long match mut namespace new null nullptr package " +
      "private protected pub public return self short signed sizeof static struct super switch " +
      "template this throw true try type typedef typename union unsigned use using var virtual " +
      "void volatile while yield",
  },
  {
    names: "python py sh bash shell zsh ruby yaml yml toml make makefile cmake",
    comment: "#[^\\n]*",
    words: "and as assert async await break case class continue def del do done elif else esac " +
      "except export False fi finally for from function global if import in is lambda local None " +
      "nonlocal not or pass raise return self then True try while with yield",
  },
  {
    names: "weft",
    comment: "#[^\\n]*",
    words: "as bias bool def entry false float gguf group hf if ignore import in include int let " +
      "match model none output params repeat require return state str tokenizer true weft weights " +
      "when",
  },
  {
    names: "sql",
    comment: "--[^\\n]*",
    words: "all and as by case create delete distinct else end foreign from group having index " +
      "inner insert into join key left limit not null on or order outer primary references right " +
      "select set table then union update values view when where",
  },
];

// Of each family, made when it is first used: its pattern and its words.
const colourForms = new Map();

function colourForm(lang) {
  const family = FAMILIES.find((f) => f.names.split(" ").includes(lang.toLowerCase()));
  if (!family) return null;
  if (!colourForms.has(family)) {
    const texts = "\"(?:[^\"\\\\\\n]|\\\\.)*\"?|'(?:[^'\\\\\\n]|\\\\.)*'?";
    const form = "(" + family.comment + ")|(" + texts + ")|(\\b\\d[\\w.]*)|([A-Za-z_]\\w*)";
    colourForms.set(family, {form: new RegExp(form, "g"), words: new Set(family.words.split(" "))});
  }
  return colourForms.get(family);
}

// Pieces {kind, text}; kind "" is plain. All texts together are `text`.
function colourSplit(text, lang) {
  const rule = colourForm(lang);
  if (!rule || text.length > COLOUR_MAX) return [{kind: "", text}];
  const {form, words} = rule;
  const out = [];
  let at = 0;
  for (const m of text.matchAll(form)) {
    const kind = m[1] ? "comment" :
      m[2]            ? "string" :
      m[3]            ? "number" :
      words.has(m[4]) ? "word" :
                        "";
    if (!kind) continue;
    if (m.index > at) out.push({kind: "", text: text.slice(at, m.index)});
    out.push({kind, text: m[0]});
    at = m.index + m[0].length;
  }
  if (at < text.length) out.push({kind: "", text: text.slice(at)});
  return out;
}

function colourNodes(text, lang) {
  return colourSplit(text, lang)
    .map((x) => (x.kind ? node("span", {class: "code-" + x.kind}, x.text) : x.text));
}
