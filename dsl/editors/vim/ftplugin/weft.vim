" Vim settings for Weft model files: two spaces; `:make` runs `weft check`.
if exists('b:did_ftplugin')
  finish
endif
let b:did_ftplugin = 1

setlocal expandtab shiftwidth=2 softtabstop=2 textwidth=0
setlocal comments=:# commentstring=#\ %s
setlocal errorformat=%f:%l:%c:\ %t%*[^[][%*[^]]]:\ %m,%-G%.%#
setlocal makeprg=weft\ check\ %:S

let b:undo_ftplugin = 'setlocal expandtab< shiftwidth< softtabstop< textwidth< comments< commentstring< errorformat< makeprg<'
