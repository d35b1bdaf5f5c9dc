; Functions that TVM's code for AMD GPUs calls and no library of ROCm defines; linked into every
; kernel.

; Fused multiply-add under the name that kernels call.
define linkonce_odr hidden float @fma(float %a, float %b, float %c) alwaysinline {
  %result = call float @llvm.fma.f32(float %a, float %b, float %c)
  ret float %result
}
declare float @llvm.fma.f32(float, float, float)

; A barrier with memory fences: TVM emits `s_barrier` alone, which since gfx90a does not wait for
; stores to shared memory, and does not stop the compiler from moving loads across it.
define linkonce_odr hidden void @wherry_barrier() alwaysinline convergent {
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  ret void
}
declare void @llvm.amdgcn.s.barrier() convergent

!llvm.module.flags = !{!0}
; Version 4 of the code object, which LLVM's linkers since 14 and ROCm since 4.5 support.
!0 = !{i32 1, !"amdhsa_code_object_version", i32 400}
