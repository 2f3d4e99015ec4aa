"""msl_tokens.py - the text of a shader as tokens that know their file and line.

The text has been preprocessed (metalc.py), so every line that begins with # is a line marker or a pragma."""
import re

SPLIT = re.compile(r'''
    (?P<space>[ \t\r\n\f\v]+)
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<char>'(?:[^'\\\n]|\\.)*')
  | (?P<number>\.?[0-9](?:[eEpP][+-]|[0-9a-zA-Z_.'])*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<mark>::|->|<<=|>>=|<<|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&|^]=|\.\.\.|.)
''', re.X)
MARKER = re.compile(r'#\s*(?:line\s+)?([0-9]+)\s+"((?:[^"\\]|\\.)*)"')

OPEN, CLOSE = {'(': ')', '[': ']', '{': '}'}, {')', ']', '}'}


class Wrong(Exception):
    """What Metal does not have, said as a compiler would."""

    def __init__(self, token, text):
        super().__init__(f'{token.file}:{token.line}: error: {text}')


class Token:
    __slots__ = ('kind', 'text', 'file', 'line', 'lead', 'out')

    def __init__(self, kind, text, file, line, lead):
        self.kind, self.text, self.file, self.line, self.lead = kind, text, file, line, lead
        self.out = text  # what is written in its place

    def __repr__(self):
        return self.text


def tokens_of(text, root):
    """All tokens but space, which each has in front of it. Files below root are named from there."""
    out, file, line, lead = [], '?', 1, ''
    for row in text.split('\n'):
        marker = MARKER.match(row)
        if marker:
            file, line = marker.group(2), int(marker.group(1))
            if file.startswith(root + '/'):
                file = file[len(root) + 1:]
            out.append(Token('line', f'#line {line} "{file}"', file, line, lead + ('\n' if out else '')))
            lead = '\n'
            continue
        if row.lstrip().startswith('#'):
            out.append(Token('pragma', row, file, line, lead))
            line, lead = line + 1, '\n'
            continue
        for m in SPLIT.finditer(row):
            if m.lastgroup == 'space':
                lead += m.group()
            else:
                out.append(Token(m.lastgroup, m.group(), file, line, lead))
                lead = ''
        line, lead = line + 1, lead + '\n'
    return out


def text_of(tokens):
    return ''.join(t.lead + t.out for t in tokens) + '\n'


def erase(tokens):
    for t in tokens:
        if t.kind != 'line':
            t.out = ''


def matching(code, i):
    """The index of what closes code[i], one of ( [ { <."""
    first = code[i].text
    depth, angle = 0, 0
    for k in range(i, len(code)):
        t = code[k].text
        if first == '<':
            if t == '<' and depth == 0:
                angle += 1
            elif t == '>' and depth == 0:
                angle -= 1
                if angle == 0:
                    return k
        if t in OPEN:
            depth += 1
        elif t in CLOSE:
            depth -= 1
            if depth == 0 and first != '<':
                return k
            if depth < 0:
                break
        elif t == ';' and first == '<':
            break
    raise Wrong(code[i], f"'{first}' is never closed")


def split_commas(code):
    """Lists of tokens between commas that are in no brackets."""
    parts, depth, angle = [[]], 0, 0
    for t in code:
        if t.text in OPEN:
            depth += 1
        elif t.text in CLOSE:
            depth -= 1
        elif t.text == '<' and depth == 0:
            angle += 1
        elif t.text == '>' and depth == 0:
            angle -= 1
        if t.text == ',' and depth == 0 and angle == 0:
            parts.append([])
        else:
            parts[-1].append(t)
    return [p for p in parts if p]


class Attribute:
    """[[name(argument)]]"""

    def __init__(self, tokens):
        self.tokens = tokens
        self.name = tokens[2].text
        self.argument = tokens[4].text.strip('"') if len(tokens) > 6 else '0'


def take_attributes(tokens):
    """Attributes leave the text. Returns the code without them, and {id of the token before one: [Attribute]}."""
    code, found, i = [], {}, 0
    rest = [t for t in tokens if t.kind not in ('line', 'pragma')]
    while i < len(rest):
        t = rest[i]
        if t.text == '[' and i + 2 < len(rest) and rest[i + 1].text == '[' and rest[i + 2].kind == 'word':
            end = matching(rest, i)
            found.setdefault(id(code[-1]) if code else 0, []).append(Attribute(rest[i:end + 1]))
            erase(rest[i:end + 1])
            i = end + 1
        else:
            code.append(t)
            i += 1
    return code, found
