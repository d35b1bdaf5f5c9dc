// objc_msgSend of Apple's run time over GCC's: finds the method and jumps to it. The registers of
// the arguments are kept for it (System V ABI for x86-64; AAPCS64).
#if defined(__x86_64__)
        .text
        .globl objc_msgSend
        .type objc_msgSend, @function
objc_msgSend:
        pushq %rbp
        movq %rsp, %rbp
        subq $176, %rsp
        movq %rdi, 0(%rsp)
        movq %rsi, 8(%rsp)
        movq %rdx, 16(%rsp)
        movq %rcx, 24(%rsp)
        movq %r8, 32(%rsp)
        movq %r9, 40(%rsp)
        movups %xmm0, 48(%rsp)
        movups %xmm1, 64(%rsp)
        movups %xmm2, 80(%rsp)
        movups %xmm3, 96(%rsp)
        movups %xmm4, 112(%rsp)
        movups %xmm5, 128(%rsp)
        movups %xmm6, 144(%rsp)
        movups %xmm7, 160(%rsp)
        call objc_msg_lookup@PLT
        movq %rax, %r11
        movq 0(%rsp), %rdi
        movq 8(%rsp), %rsi
        movq 16(%rsp), %rdx
        movq 24(%rsp), %rcx
        movq 32(%rsp), %r8
        movq 40(%rsp), %r9
        movups 48(%rsp), %xmm0
        movups 64(%rsp), %xmm1
        movups 80(%rsp), %xmm2
        movups 96(%rsp), %xmm3
        movups 112(%rsp), %xmm4
        movups 128(%rsp), %xmm5
        movups 144(%rsp), %xmm6
        movups 160(%rsp), %xmm7
        leave
        jmp *%r11
        .size objc_msgSend, .-objc_msgSend
#elif defined(__aarch64__)
        .text
        .globl objc_msgSend
        .type objc_msgSend, %function
objc_msgSend:
        stp x29, x30, [sp, #-224]!
        mov x29, sp
        stp x0, x1, [sp, #16]
        stp x2, x3, [sp, #32]
        stp x4, x5, [sp, #48]
        stp x6, x7, [sp, #64]
        str x8, [sp, #80]
        stp q0, q1, [sp, #96]
        stp q2, q3, [sp, #128]
        stp q4, q5, [sp, #160]
        stp q6, q7, [sp, #192]
        bl objc_msg_lookup
        mov x9, x0
        ldp x0, x1, [sp, #16]
        ldp x2, x3, [sp, #32]
        ldp x4, x5, [sp, #48]
        ldp x6, x7, [sp, #64]
        ldr x8, [sp, #80]
        ldp q0, q1, [sp, #96]
        ldp q2, q3, [sp, #128]
        ldp q4, q5, [sp, #160]
        ldp q6, q7, [sp, #192]
        ldp x29, x30, [sp], #224
        br x9
        .size objc_msgSend, .-objc_msgSend
#endif
        .section .note.GNU-stack, "", %progbits
