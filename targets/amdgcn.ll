; What TVM's code for AMD GPUs calls and no library of ROCm defines; linked into every kernel.

; One rounding, as the kernels ask for by this name.
define linkonce_odr hidden float @fma(float %a, float %b, float %c) alwaysinline {
  %result = call float @llvm.fma.f32(float %a, float %b, float %c)
  ret float %result
}
declare float @llvm.fma.f32(float, float, float)

; A barrier that memory obeys: TVM emits `s_barrier` alone, before which nothing waits for what was
; written to shared memory on the GPUs since gfx90a, and across which loads may be moved.
define linkonce_odr hidden void @wherry_barrier() alwaysinline convergent {
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  ret void
}
declare void @llvm.amdgcn.s.barrier() convergent

!llvm.module.flags = !{!0}
; Version 4 of the code object: what LLVM's linkers from 14 link, and every ROCm since 4.5 loads.
!0 = !{i32 1, !"amdhsa_code_object_version", i32 400}
