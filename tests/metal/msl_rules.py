"""msl_rules.py - what C++ has and Metal has not: each is refused with file and line."""
from msl_tokens import OPEN, Wrong, matching
from msl_shader import SPACES, VECTORS

WORDS = {
    'double': 'double does not exist in Metal',
    'virtual': 'virtual functions do not exist in Metal',
    'throw': 'exceptions do not exist in Metal',
    'try': 'exceptions do not exist in Metal',
    'catch': 'exceptions do not exist in Metal',
    'new': 'new does not exist in Metal',
    'delete': 'delete does not exist in Metal',
    'dynamic_cast': 'dynamic_cast does not exist in Metal',
    'typeid': 'typeid does not exist in Metal',
    'thread_local': 'thread_local does not exist in Metal',
    'goto': 'goto does not exist in Metal',
    'asm': 'asm does not exist in Metal',
    '__asm__': 'asm does not exist in Metal',
    'std': 'the library of C++ does not exist in Metal',
    '__int128': '__int128 does not exist in Metal',
}
CALLS = {'printf', 'fprintf', 'puts', 'malloc', 'calloc', 'realloc', 'free', 'memcpy', 'memmove', 'memset', 'memcmp',
         'strlen', 'abort', 'exit', 'assert', 'qsort', 'expf', 'sqrtf', 'logf', 'powf', 'tanhf', 'fabsf', 'sinf', 'cosf'}
BEFORE_CAST = {'=', '(', ',', 'return', '+', '-', '*', '/', '[', '{', ';', '?', ':', '&&', '||', '<', '>', '+=', '-=', '*='}


def check_words(shader):
    c = shader.code
    for i, t in enumerate(c):
        if t.text in WORDS:
            raise Wrong(t, WORDS[t.text])
        if t.text == 'long' and c[i + 1].text == 'long':
            raise Wrong(t, 'long long does not exist in Metal')
        if t.text in CALLS and c[i + 1].text == '(' and c[i - 1].text not in ('.', '->'):
            raise Wrong(t, f'{t.text} is of the host, not of Metal')
        if t.text == '[' and c[i - 1].text in ('=', '(', ',', 'return', '{', ';'):
            raise Wrong(t, 'lambdas do not exist in Metal')
        if (t.text == '(' and c[i + 1].text in VECTORS and c[i + 2].text == ')' and c[i - 1].text in BEFORE_CAST
                and (c[i + 3].kind in ('word', 'number') or c[i + 3].text == '(')):
            raise Wrong(t, f'write {c[i + 1].text}(x): C casts to vectors are not in the subset')


def check_data(shader):
    for code in shader.data:
        if not any(t.text == 'constant' for t in code):
            raise Wrong(code[0], 'data outside of functions must be constant')
    for f in shader.functions:
        for i, t in enumerate(f.body):
            if t.text == 'static' and not any(x.text == 'constant' for x in f.body[i + 1:i + 3]):
                raise Wrong(t, 'static variables do not exist in Metal')


def type_begins(shader, code, i):
    """Of a * or & at code[i]: (is a type in front of it, has it an address space)."""
    k, space = i - 1, False
    while k >= 0 and (code[k].text in SPACES or code[k].text in ('const', 'volatile')):
        space |= code[k].text in SPACES
        k -= 1
    if k >= 0 and code[k].text == '>':
        depth = 0
        while k >= 0:
            depth += {'>': 1, '<': -1}.get(code[k].text, 0)
            k -= 1
            if depth == 0 or code[k].text in ';{}':
                break
    if k < 0 or code[k].kind != 'word' or code[k].text not in shader.types:
        return space, space
    k -= 1
    while k >= 0 and (code[k].text in SPACES or code[k].text in
                      ('const', 'volatile', 'unsigned', 'signed', 'typename', 'struct', '::', 'metal', 'static', 'inline',
                       'constexpr')):
        space |= code[k].text in SPACES
        k -= 1
    return True, space


def check_pointers(shader):
    c, declared = shader.code, set()
    for i, t in enumerate(c):
        if t.text not in ('*', '&') or i == 0:
            continue
        if c[i - 1].text == '*' and i - 1 in declared:
            raise Wrong(t, "a pointer to a pointer has two address spaces: write 'device T *thread *'")
        is_type, space = type_begins(shader, c, i)
        if is_type and not space:
            raise Wrong(t, f"a {'pointer' if t.text == '*' else 'reference'} to {c[i - 1].text} has no address space")
        if is_type:
            declared.add(i)


def calls_of(shader):
    """By name: a function's callees among those of the text. Overloads are one."""
    names = {f.name for f in shader.functions}
    calls = {}
    for f in shader.functions:
        for i, t in enumerate(f.body[:-1]):
            if t.text not in names:
                continue
            k = i + 1
            if f.body[k].text == '<':
                try:
                    k = matching(f.body, k) + 1
                except Wrong:
                    continue
            if f.body[k].text == '(' and f.body[i - 1].text not in ('.', '->'):
                calls.setdefault(f.name, set()).add(t.text)
    return calls


def cycle_in(calls):
    """A name from which calls lead back to itself, or None."""
    state = {}

    def visit(name):
        state[name] = 1
        for to in calls.get(name, ()):
            if state.get(to) == 1 or (to not in state and visit(to)):
                return state.setdefault('found', to)
        state[name] = 2
        return None

    return next((state['found'] for name in list(calls) if name not in state and visit(name)), None)


def check(shader):
    check_words(shader)
    check_data(shader)
    check_pointers(shader)
