/* objc_send.S - objc_msgSend: keeps every register that may hold an argument, asks objc_method which function it is, jumps there.
 *
 * So a method is a plain function (self, selector, arguments...), and the compiler does the rest on both sides, structures too. A
 * method of nil returns zero. On x86_64 a structure that is returned in memory has its own entry, since its address comes
 * first. */
#if defined(__aarch64__)
    .text
    .globl objc_msgSend
    .globl objc_msgSend_fpret
    .globl objc_msgSend_stret
    .type objc_msgSend, %function
objc_msgSend:
objc_msgSend_fpret:
objc_msgSend_stret:
    stp x29, x30, [sp, #-16]!
    mov x29, sp
    sub sp, sp, #208
    stp x0, x1, [sp]
    stp x2, x3, [sp, #16]
    stp x4, x5, [sp, #32]
    stp x6, x7, [sp, #48]
    str x8, [sp, #64]
    stp q0, q1, [sp, #80]
    stp q2, q3, [sp, #112]
    stp q4, q5, [sp, #144]
    stp q6, q7, [sp, #176]
    bl objc_method
    mov x16, x0
    ldp x0, x1, [sp]
    ldp x2, x3, [sp, #16]
    ldp x4, x5, [sp, #32]
    ldp x6, x7, [sp, #48]
    ldr x8, [sp, #64]
    ldp q0, q1, [sp, #80]
    ldp q2, q3, [sp, #112]
    ldp q4, q5, [sp, #144]
    ldp q6, q7, [sp, #176]
    mov sp, x29
    ldp x29, x30, [sp], #16
    br x16
    .size objc_msgSend, .-objc_msgSend

    .globl objc_nil
    .type objc_nil, %function
objc_nil:
    mov x0, #0
    mov x1, #0
    movi v0.2d, #0
    movi v1.2d, #0
    movi v2.2d, #0
    movi v3.2d, #0
    ret
    .size objc_nil, .-objc_nil

#elif defined(__x86_64__)
    .text
    .macro SEND name, self, selector
    .globl \name
    .type \name, @function
\name:
    push %rbp
    mov %rsp, %rbp
    sub $192, %rsp
    mov %rdi, (%rsp)
    mov %rsi, 8(%rsp)
    mov %rdx, 16(%rsp)
    mov %rcx, 24(%rsp)
    mov %r8, 32(%rsp)
    mov %r9, 40(%rsp)
    mov %rax, 48(%rsp)
    movaps %xmm0, 64(%rsp)
    movaps %xmm1, 80(%rsp)
    movaps %xmm2, 96(%rsp)
    movaps %xmm3, 112(%rsp)
    movaps %xmm4, 128(%rsp)
    movaps %xmm5, 144(%rsp)
    movaps %xmm6, 160(%rsp)
    movaps %xmm7, 176(%rsp)
    mov \self, %rax
    mov \selector, %rsi
    mov %rax, %rdi
    call objc_method@PLT
    mov %rax, %r11
    mov (%rsp), %rdi
    mov 8(%rsp), %rsi
    mov 16(%rsp), %rdx
    mov 24(%rsp), %rcx
    mov 32(%rsp), %r8
    mov 40(%rsp), %r9
    mov 48(%rsp), %rax
    movaps 64(%rsp), %xmm0
    movaps 80(%rsp), %xmm1
    movaps 96(%rsp), %xmm2
    movaps 112(%rsp), %xmm3
    movaps 128(%rsp), %xmm4
    movaps 144(%rsp), %xmm5
    movaps 160(%rsp), %xmm6
    movaps 176(%rsp), %xmm7
    leave
    jmp *%r11
    .size \name, .-\name
    .endm
    SEND objc_msgSend, %rdi, %rsi
    SEND objc_msgSend_fpret, %rdi, %rsi
    SEND objc_msgSend_stret, %rsi, %rdx

    .globl objc_nil
    .type objc_nil, @function
objc_nil:
    xor %eax, %eax
    xor %edx, %edx
    xorps %xmm0, %xmm0
    xorps %xmm1, %xmm1
    ret
    .size objc_nil, .-objc_nil
#endif
    .section .note.GNU-stack, "", %progbits
