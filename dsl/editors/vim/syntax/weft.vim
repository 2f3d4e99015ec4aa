" Vim syntax for Weft model files (dsl/LANGUAGE.md).
" Operations, weight kinds and transforms are not reserved words: any name before `(` is a function.
if exists('b:current_syntax')
  finish
endif

syntax match   weftFunction     "\<\h\w*\ze\s*("
syntax match   weftAttribute    "\<\h\w*\ze\s*=\%([^=>]\|$\)" contained
syntax cluster weftInside       contains=weftFunction,weftOperator,weftArrow,weftNumber,weftBoolean,weftConstant,weftBuiltin,weftType,weftString,weftComment,weftCall
syntax region  weftCall         start="(" end=")" transparent contains=@weftInside,weftAttribute

syntax match   weftOperator     "[-+*/%^!<>=?:|&]"
syntax match   weftArrow        "->\|=>\|??\|\.\."

syntax match   weftNumber       "\<\d\+\%(\.\d\+\)\=\%([eE][+-]\=\d\+\)\=\>"

syntax keyword weftStructure    weft import as fragment block model match tokenizer chat include
syntax keyword weftStructure    params weights group ignore state entry
syntax keyword weftSource       gguf hf
syntax keyword weftStatement    output require let return
syntax keyword weftRepeat       repeat in
syntax keyword weftConditional  if else when
syntax keyword weftBoolean      true false
syntax keyword weftConstant     none
syntax keyword weftBuiltin      pi source session it T R S
syntax match   weftType         "\%(:\s*\)\@<=\%(int\|float\|bool\|str\|list\|f\|i32\|word\)\>"

" The kind that opens a weight line: a name followed by another name.
syntax match   weftKind         "^\s*\zs\h\w*\ze\s\+\h\w*?\=\s*[[(]" contains=weftStructure,weftSource,weftStatement,weftRepeat,weftConditional
" A name that a line declares: after a keyword, or before a colon in params and state.
syntax match   weftDefinition   "\%(\<\%(fragment\|block\|model\|entry\|group\|let\|output\|as\)\s\+\)\@<=\h\w*"

syntax region  weftString       start=+"+ skip=+\\.+ end=+"+ end=+$+ contains=weftEscape,weftInterpolation
syntax match   weftEscape       +\\["\\n{]+ contained
syntax match   weftInterpolation "{\h\w*}" contained

syntax match   weftComment      "#.*$" contains=@Spell

highlight default link weftFunction      Function
highlight default link weftAttribute     Identifier
highlight default link weftOperator      Operator
highlight default link weftArrow         Operator
highlight default link weftNumber        Number
highlight default link weftStructure     Keyword
highlight default link weftSource        StorageClass
highlight default link weftStatement     Statement
highlight default link weftRepeat        Repeat
highlight default link weftConditional   Conditional
highlight default link weftBoolean       Boolean
highlight default link weftConstant      Constant
highlight default link weftBuiltin       Special
highlight default link weftType          Type
highlight default link weftKind          Type
highlight default link weftDefinition    Identifier
highlight default link weftString        String
highlight default link weftEscape        SpecialChar
highlight default link weftInterpolation SpecialChar
highlight default link weftComment       Comment

let b:current_syntax = 'weft'
