"""msl_shader.py - what is in a shader: functions, kernels, function constants, types. Rewrites what C++ lacks.

Attributes leave the text; kernels, their parameters and [[host_name]] instances go into a table at the end of it; threadgroup
variables and function constants become statics that the runtime knows; `float4(` becomes `msl::make<float4>(`."""
from msl_tokens import OPEN, CLOSE, Wrong, erase, matching, split_commas, take_attributes

KINDS = {
    'buffer': 'PARAM_BUFFER',
    'threadgroup': 'PARAM_SHARED',
    'thread_position_in_grid': 'PARAM_THREAD_IN_GRID',
    'thread_position_in_threadgroup': 'PARAM_THREAD_IN_GROUP',
    'threadgroup_position_in_grid': 'PARAM_GROUP_IN_GRID',
    'thread_index_in_threadgroup': 'PARAM_THREAD_INDEX',
    'thread_index_in_simdgroup': 'PARAM_LANE',
    'simdgroup_index_in_threadgroup': 'PARAM_SIMDGROUP',
    'simdgroups_per_threadgroup': 'PARAM_SIMDGROUPS',
    'threads_per_simdgroup': 'PARAM_WIDTH',
    'thread_execution_width': 'PARAM_WIDTH',
    'threads_per_threadgroup': 'PARAM_GROUP_THREADS',
    'threadgroups_per_grid': 'PARAM_GRID_GROUPS',
    'threads_per_grid': 'PARAM_GRID_THREADS',
}
SCALARS = ['char', 'uchar', 'short', 'ushort', 'int', 'uint', 'long', 'ulong', 'half', 'float', 'bfloat']
VECTORS = {p + s + n for p in ('', 'packed_') for s in SCALARS for n in '234'}
TYPES = VECTORS | set(SCALARS) | {
    'void', 'bool', 'unsigned', 'signed', 'size_t', 'ptrdiff_t', 'auto', 'atomic_uint', 'atomic_int', 'atomic_float',
    'atomic_ulong', 'simdgroup_half8x8', 'simdgroup_float8x8', 'simdgroup_bfloat8x8', 'simdgroup_matrix', 'vec'
} | {f'{u}int{n}_t' for u in ('', 'u') for n in (8, 16, 32, 64)}
SPACES = {'device', 'constant', 'threadgroup', 'thread'}


class Function:
    def __init__(self, name, head, body, kernel, template):
        self.name, self.head, self.body, self.kernel, self.template = name, head, body, kernel, template


class Shader:
    def __init__(self, tokens, check):
        self.check = check
        self.types, self.parameters = set(TYPES), set()
        self.functions, self.data, self.kernels, self.constants = [], [], [], set()
        self.code, self.attributes = take_attributes(tokens)
        self.name_types()
        c = self.code
        self.asked = {c[i + 2].text for i, t in enumerate(c[:-2]) if t.text == 'is_function_constant_defined'}
        self.scope(0, len(self.code))
        self.rewrite_constructors()

    # ---- what there is ----

    def name_types(self):
        c = self.code
        for i, t in enumerate(c[:-1]):
            n = c[i + 1]
            if t.text in ('struct', 'class', 'enum', 'union') and n.kind == 'word':
                if n.text in ('class', 'struct'):
                    n = c[i + 2]
                self.types.add(n.text)
            elif t.text == 'using' and n.kind == 'word' and c[i + 2].text == '=':
                self.types.add(n.text)
            elif t.text == 'typedef':
                k = i
                while c[k].text != ';':
                    k += matching(c, k) - k if c[k].text in OPEN else 1
                self.types.add(c[k - 1].text)
            elif t.text == 'template' and n.text == '<':
                for p in split_commas(c[i + 2:matching(c, i + 1)]):
                    if p[0].text in ('class', 'typename') and len(p) > 1 and p[1].kind == 'word':
                        self.parameters.add(p[1].text)
        self.types |= self.parameters

    def attributes_of(self, tokens):
        return [a for t in tokens for a in self.attributes.get(id(t), [])]

    def scope(self, i, end):
        """Declarations of a namespace, code[i:end]."""
        c, start = self.code, i
        while i < end:
            t = c[i].text
            if t in '([':
                i = matching(c, i) + 1
            elif t == '{':
                close = matching(c, i)
                i = self.braces(start, i, close)
                if i > close:
                    start = i
            elif t == ';':
                self.statement(c[start:i + 1])
                i = start = i + 1
            else:
                i += 1

    def braces(self, start, open_at, close):
        """A body in braces, whose head is code[start:open_at]. Returns where the scan goes on."""
        c = self.code
        head, template = c[start:open_at], None
        if head and head[0].text == 'template' and head[1].text == '<':
            k = matching(head, 1)
            template, head = head[:k + 1], head[k + 1:]
        words = [t.text for t in head]
        if words[:1] == ['namespace'] or words[:1] == ['extern']:
            self.scope(open_at + 1, close)
            return close + 1
        paren = next((k for k, t in enumerate(head) if t.text == '('), None)
        if '=' in words[:paren if paren is not None else None] or words[:1] == ['enum']:
            return close  # an initialiser or a list of names: the statement ends at its semicolon
        if paren is None:
            self.members(open_at + 1, close)
            return close
        f = Function(head[paren - 1].text, head, c[open_at:close + 1], 'kernel' in words[:paren], template)
        self.functions.append(f)
        if f.kernel:
            self.kernel(f, paren)
        self.shared_variables(f)
        return close + 1

    def members(self, i, end):
        """Functions in a struct; its data is C++ as it stands."""
        c, start = self.code, i
        while i < end:
            if c[i].text in '([':
                i = matching(c, i) + 1
            elif c[i].text == '{':
                close, head = matching(c, i), c[start:i]
                paren = next((k for k, t in enumerate(head) if t.text == '('), None)
                if paren:
                    f = Function(head[paren - 1].text, head, c[i:close + 1], False, None)
                    self.functions.append(f)
                    self.shared_variables(f)
                i = start = close + 1
            elif c[i].text == ';':
                i = start = i + 1
            else:
                i += 1

    def statement(self, code):
        """A declaration that ends with a semicolon, at file scope."""
        words = [t.text for t in code]
        if words[0] == 'template' and words[1] != '<':
            self.instance(code)
            return
        if words[0] in ('using', 'typedef', 'struct', 'class', 'union', 'enum', 'static_assert', 'template', ';', 'friend'):
            return
        stop = words.index('=') if '=' in words else len(words)
        if '(' in words[:stop]:
            return  # a function that is defined elsewhere
        self.data.append(code)
        index = [a for a in self.attributes_of(code) if a.name == 'function_constant']
        if index:
            self.function_constant(code, index[0].argument)
        elif self.constants & set(words[stop:]) and not self.check:
            self.derived_constant(code, stop)

    # ---- kernels ----

    def kernel(self, f, paren):
        close = matching(f.head, paren)
        rows = []
        for p in split_commas(f.head[paren + 1:close]):
            words = [t.text for t in p]
            found = [a for a in self.attributes_of(p) if a.name in KINDS]
            if len(found) != 1:
                raise Wrong(p[0], f"kernel {f.name}: parameter '{' '.join(words)}' has no attribute that is known")
            pointer = '*' in words or '&' in words
            if pointer != (found[0].name in ('buffer', 'threadgroup')):
                raise Wrong(p[0], f"kernel {f.name}: '{' '.join(words)}' cannot be [[{found[0].name}]]")
            if found[0].name == 'threadgroup' and 'threadgroup' not in words:
                raise Wrong(p[0], f"kernel {f.name}: '{' '.join(words)}' is not in threadgroup memory")
            if found[0].name == 'buffer' and not {'device', 'constant'} & set(words):
                raise Wrong(p[0], f"kernel {f.name}: '{' '.join(words)}' is neither device nor constant")
            rows.append(f'{{{KINDS[found[0].name]}, {found[0].argument}}}')
        f.rows = rows
        most = [a.argument for a in self.attributes_before(f) if a.name == 'max_total_threads_per_threadgroup']
        f.threads_max = most[0] if most else '0'
        if f.template is None:
            self.kernels.append((f.name, f.name, f))

    def attributes_before(self, f):
        """Those in front of a function hang on the token before it, or on one of its own."""
        i = self.code.index((f.template or f.head)[0])
        before = self.code[i - 1:i] if i else []
        return (self.attributes.get(0, []) if not i else []) + self.attributes_of(before + f.head)

    def instance(self, code):
        """template [[host_name("n")]] kernel void f<2>(...);"""
        names = [a.argument for a in self.attributes_of(code) if a.name == 'host_name']
        known = {f.name: f for f in self.functions if f.kernel and f.template}
        for i, t in enumerate(code):
            if t.text in known and code[i + 1].text == '<':
                text = ' '.join(x.text for x in code[i:matching(code, i + 1) + 1])
                if names:
                    self.kernels.append((names[0], text, known[t.text]))
                    erase(code)
                    return
        if names:
            raise Wrong(code[0], f'host_name("{names[0]}"): no kernel of that name is a template')

    def shared_variables(self, f):
        b = f.body
        for i, t in enumerate(b):
            if t.text != 'threadgroup' or b[i - 1].text not in ';{}':
                continue
            k = i
            while b[k].text not in (';', '*', '&', '=', '('):
                k += matching(b, k) - k + 1 if b[k].text == '[' else 1
            if b[k].text == '=':
                raise Wrong(t, 'threadgroup memory cannot be initialised')
            if b[k].text == ';':
                if not f.kernel:
                    raise Wrong(t, f"threadgroup variable in {f.name}: only kernels can have them")
                t.out = 'MSL_SHARED'

    # ---- function constants ----

    def function_constant(self, code, index):
        name, kind = code[-2], [t for t in code[:-2] if t.text not in ('constant', 'const', 'static')]
        erase([t for t in code[:-2] if t not in kind])
        kind[0].out = 'static ' + kind[0].out
        asked = 'true' if name.text in self.asked else 'false'
        code[-1].out = f'; [[maybe_unused]] static msl::constant_entry msl_constant_{name.text}("{name.text}", {index}, {asked}, &{name.text});'
        self.constants.add(name.text)

    def derived_constant(self, code, stop):
        """Computed from function constants: anew wherever it is read, since those change with the pipeline."""
        name = code[stop - 1].text
        erase([t for t in code[:stop - 1] if t.text in ('constant', 'static', 'constexpr', 'const')])
        code[0].out = 'static inline ' + code[0].out
        code[stop - 1].out = f'msl_derived_{name}() {{ return'
        code[stop].out = ''
        code[-1].out = f'; }}\n#define {name} msl_derived_{name}()\n#line {code[-1].line} "{code[-1].file}"\n'
        self.constants.add(name)

    # ---- expressions ----

    def rewrite_constructors(self):
        c = self.code
        for i, t in enumerate(c[:-1]):
            if t.kind != 'word' or t.out != t.text or c[i - 1].text in ('.', '->'):
                continue
            if c[i + 1].text == '(' and (t.text in VECTORS or t.text in self.parameters):
                t.out = f'::msl::make<{t.text}>'
            elif t.text == 'vec' and c[i + 1].text == '<':
                close = matching(c, i + 1)
                if c[close + 1].text == '(':
                    t.out = '::msl::make<metal::vec'
                    c[close].out = '>>'

    def tail(self):
        """The table of kernels; in the check pass they are only named, so that templates are made."""
        rows = []
        for i, (name, text, f) in enumerate(self.kernels):
            if self.check:
                rows.append(f'[[maybe_unused]] static auto msl_check_{i} = &{text};')
                continue
            n = len(f.rows)
            rows.append(f'static const shader_param msl_params_{i}[] = {{{", ".join(f.rows) or "{}"}}};\n'
                        f'static_assert(msl::entry<&{text}>::params == {n}, "{name}");\n'
                        f'static msl::kernel_entry msl_kernel_{i}("{name}", msl::entry<&{text}>::call, '
                        f'msl_params_{i}, {n}, {f.threads_max});')
        return '\n'.join(rows) + '\n'
