// Instructions of sm_90 that let a warpgroup (four warps) multiply tokens in shared memory, and copy
// into it. Tests replace them by an emulator's. Source: PTX ISA 8.0, sections on mbarrier,
// cp.async.bulk, wgmma and setmaxnreg.
#ifndef WHERRY_GROUP_INSTRUCTIONS
#define WHERRY_GROUP_INSTRUCTIONS

namespace wherry {

struct Barrier {  // of shared memory; arrivals and bytes complete a phase, phases alternate in parity
  unsigned long long bits;
};

__device__ __forceinline__ Word32 shared_address(const void* at) {
  return static_cast<Word32>(__cvta_generic_to_shared(at));
}

__device__ __forceinline__ void start_barrier(Barrier* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(arrivals)
               : "memory");
}

// Copies in bulk see the barriers.
__device__ __forceinline__ void show_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Returns when the phase of this parity is complete: the newest one or the one before.
__device__ __forceinline__ void wait_for(Barrier* barrier, Word32 parity) {
  asm volatile(
      "{\n.reg .pred there;\nagain:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 there, [%0], %1;\n"
      "@there bra done;\nbra again;\ndone:\n}\n" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}

__device__ __forceinline__ void arrive(Barrier* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}

// Arrives, and the phase waits for `bytes` of copies, too.
__device__ __forceinline__ void arrive_and_expect(Barrier* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   shared_address(barrier)),
               "r"(bytes)
               : "memory");
}

// Arrives when the copies that this thread has started (`start_copy`) are complete.
__device__ __forceinline__ void arrive_after_copies(Barrier* barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(
                   shared_address(barrier))
               : "memory");
}

// Copies a multiple of 16 bytes from global to shared memory.
__device__ __forceinline__ void copy_in_bulk(void* to, const void* from, int bytes,
                                             Barrier* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}

// A barrier of kThreads threads, all of their warps.
template <int kThreads>
__device__ __forceinline__ void sync_some() {
  asm volatile("bar.sync 1, %0;" ::"n"(kThreads) : "memory");
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define WHERRY_GROUPS_MULTIPLY

// Registers of a thread from here on; all threads of a warpgroup come here.
template <int kCount>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}
template <int kCount>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}

// Between writing operands and multiplying them; after a batch of multiplications.
__device__ __forceinline__ void begin_batch() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void end_batch() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kBatches>  // the newest ones, which may still run
__device__ __forceinline__ void wait_for_batches() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kBatches) : "memory");
}

// sums [64, 128] = a [64, 16] b [16, 128], added to sums if `add`; 16 rows a warp, spread over its
// lanes as by `multiply_add`. b is step `step` of a chunk of 128 tokens in shared memory, aligned to
// 1,024 bytes: 128 bytes each, whose units of 16 bytes are at unit ^ token % 8.
__device__ __forceinline__ void multiply_tokens(float (&sums)[16][4], const Word32 (&a)[4],
                                                const void* chunk, int step, bool add) {
  // rows of 8 tokens are 1,024 bytes apart; the order of units is the 128-byte swizzle
  const unsigned long long kind = 1ull << 62 | 64ull << 32 | 1ull << 16;
  const unsigned long long b = kind | ((shared_address(chunk) >> 4) + step * 2);
  asm volatile(
      "{\n.reg .pred add;\nsetp.ne.b32 add, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, "
      "%8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, "
      "%40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, "
      "%56, %57, %58, %59, %60, %61, %62, %63}, "
      "{%64, %65, %66, %67}, %68, add, 1, 1, 0;\n}\n"
      : "+f"(sums[0][0]), "+f"(sums[0][1]), "+f"(sums[0][2]), "+f"(sums[0][3]),
        "+f"(sums[1][0]), "+f"(sums[1][1]), "+f"(sums[1][2]), "+f"(sums[1][3]),
        "+f"(sums[2][0]), "+f"(sums[2][1]), "+f"(sums[2][2]), "+f"(sums[2][3]),
        "+f"(sums[3][0]), "+f"(sums[3][1]), "+f"(sums[3][2]), "+f"(sums[3][3]),
        "+f"(sums[4][0]), "+f"(sums[4][1]), "+f"(sums[4][2]), "+f"(sums[4][3]),
        "+f"(sums[5][0]), "+f"(sums[5][1]), "+f"(sums[5][2]), "+f"(sums[5][3]),
        "+f"(sums[6][0]), "+f"(sums[6][1]), "+f"(sums[6][2]), "+f"(sums[6][3]),
        "+f"(sums[7][0]), "+f"(sums[7][1]), "+f"(sums[7][2]), "+f"(sums[7][3]),
        "+f"(sums[8][0]), "+f"(sums[8][1]), "+f"(sums[8][2]), "+f"(sums[8][3]),
        "+f"(sums[9][0]), "+f"(sums[9][1]), "+f"(sums[9][2]), "+f"(sums[9][3]),
        "+f"(sums[10][0]), "+f"(sums[10][1]), "+f"(sums[10][2]), "+f"(sums[10][3]),
        "+f"(sums[11][0]), "+f"(sums[11][1]), "+f"(sums[11][2]), "+f"(sums[11][3]),
        "+f"(sums[12][0]), "+f"(sums[12][1]), "+f"(sums[12][2]), "+f"(sums[12][3]),
        "+f"(sums[13][0]), "+f"(sums[13][1]), "+f"(sums[13][2]), "+f"(sums[13][3]),
        "+f"(sums[14][0]), "+f"(sums[14][1]), "+f"(sums[14][2]), "+f"(sums[14][3]),
        "+f"(sums[15][0]), "+f"(sums[15][1]), "+f"(sums[15][2]), "+f"(sums[15][3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(add)));
}
#endif

}  // namespace wherry
#endif
