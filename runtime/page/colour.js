// colour.js - code into pieces of a kind: comments, strings, numbers, words of the language. One rough rule for each family of
// languages; a piece that is wrong has the wrong colour and nothing else.

const COLOUR_MAX = 100000; // letters; longer code stays plain

const WORDS_C = "auto break case catch class const continue default delete do else enum export extends extern false final finally " +
  "fn for function if impl import in inline int interface let long match mut namespace new null nullptr package private " +
  "protected pub public return self short signed sizeof static struct super switch template this throw true try type " +
  "typedef typename union unsigned use using var virtual void volatile while async await yield bool char float double";
const WORDS_HASH = "and as assert async await break case class continue def del do done elif else esac except export False fi finally " +
  "for from function global if import in is lambda local None nonlocal not or pass raise return self then True try while with yield";
const WORDS_WEFT = "weft import model match gguf hf if tokenizer let params int float str bool require include as weights group when ignore " +
  "state entry repeat in output def return true false none bias";
const WORDS_SQL = "select from where and or not insert into values update set delete create table index view join left right inner outer on " +
  "group by order having limit union all distinct as null primary key foreign references case when then else end";

const COLOUR_C = { comment: "\\/\\/[^\\n]*|\\/\\*[^]*?(?:\\*\\/|$)", words: WORDS_C };
const COLOUR_HASH = { comment: "#[^\\n]*", words: WORDS_HASH };
const COLOUR_WEFT = { comment: "#[^\\n]*", words: WORDS_WEFT };
const COLOUR_SQL = { comment: "--[^\\n]*", words: WORDS_SQL };

const LANGUAGES = {
  c: COLOUR_C, h: COLOUR_C, cc: COLOUR_C, cpp: COLOUR_C, "c++": COLOUR_C, cuda: COLOUR_C, metal: COLOUR_C, java: COLOUR_C, js: COLOUR_C,
  "javascript": COLOUR_C, ts: COLOUR_C, typescript: COLOUR_C, go: COLOUR_C, rust: COLOUR_C, rs: COLOUR_C, swift: COLOUR_C, kotlin: COLOUR_C,
  cs: COLOUR_C, csharp: COLOUR_C, php: COLOUR_C, json: COLOUR_C, css: COLOUR_C,
  python: COLOUR_HASH, py: COLOUR_HASH, sh: COLOUR_HASH, bash: COLOUR_HASH, shell: COLOUR_HASH, zsh: COLOUR_HASH, ruby: COLOUR_HASH,
  yaml: COLOUR_HASH, yml: COLOUR_HASH, toml: COLOUR_HASH, make: COLOUR_HASH, makefile: COLOUR_HASH, cmake: COLOUR_HASH,
  weft: COLOUR_WEFT, sql: COLOUR_SQL,
};

const colourForms = new Map(); // made when first used

function colourForm(rule) {
  if (!colourForms.has(rule)) {
    const form = "(" + rule.comment + ")|(\"(?:[^\"\\\\\\n]|\\\\.)*\"?|'(?:[^'\\\\\\n]|\\\\.)*'?)|(\\b\\d[\\w.]*)|([A-Za-z_]\\w*)";
    colourForms.set(rule, { form: new RegExp(form, "g"), words: new Set(rule.words.split(" ")) });
  }
  return colourForms.get(rule);
}

// Pieces {kind, text}; kind "" is plain. All texts together are `text`.
function colourSplit(text, lang) {
  const rule = Object.hasOwn(LANGUAGES, lang.toLowerCase()) ? LANGUAGES[lang.toLowerCase()] : null;
  if (!rule || text.length > COLOUR_MAX) return [{ kind: "", text }];
  const { form, words } = colourForm(rule);
  const out = [];
  let at = 0;
  for (const m of text.matchAll(form)) {
    const kind = m[1] ? "comment" : m[2] ? "string" : m[3] ? "number" : words.has(m[4]) ? "word" : "";
    if (!kind) continue;
    if (m.index > at) out.push({ kind: "", text: text.slice(at, m.index) });
    out.push({ kind, text: m[0] });
    at = m.index + m[0].length;
  }
  if (at < text.length) out.push({ kind: "", text: text.slice(at) });
  return out;
}

function colourNodes(text, lang) {
  return colourSplit(text, lang).map((x) => (x.kind ? node("span", { class: "code-" + x.kind }, x.text) : x.text));
}
