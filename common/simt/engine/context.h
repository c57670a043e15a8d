// Where a fiber goes on: what is left of a stack whose code has made room for another's.
//
// On x86-64 a switch is a few instructions, inlined where a thread waits: the compiler keeps what it needs of the
// registers, and the control words of the floating point units, which no kernel changes, stay as they are. On other
// processors Boost.Context does it.
#pragma once

#if defined(__x86_64__) && defined(__LP64__) && defined(__GNUC__)
#define SIMT_OWN_SWITCH 1
#else
#define SIMT_OWN_SWITCH 0
#endif

namespace simt {

struct Context {
  void* stack = nullptr;  // null: there is nothing to go on with
  void* frame = nullptr;
  void (*code)() = nullptr;
};

// Whoever goes there begins with `main` on this stack, which never returns.
void make_context(Context& context, char* stack, unsigned long bytes, void (*main)());

// Who has to make room for whom; for nobody, if they are the same.
struct Turn {
  Context* from = nullptr;
  Context* to = nullptr;
};

// In what kernels call, this is inlined into the kernel itself, after a call that says whose turn it is has returned.
// The processor predicts where a function returns to from its calls, and knows nothing of fibers: if one that was
// called on one fiber returned on another, it would often be wrong, which takes longer than all the rest.
#if SIMT_OWN_SWITCH
__attribute__((always_inline)) inline void make_room(Turn turn) {
  if (turn.from == turn.to) return;
  asm volatile(
      "movq %%rsp, (%0)\n\t"
      "movq %%rbp, 8(%0)\n\t"
      "leaq 1f(%%rip), %%rax\n\t"
      "movq %%rax, 16(%0)\n\t"
      "movq (%1), %%rsp\n\t"
      "movq 8(%1), %%rbp\n\t"
      "jmpq *16(%1)\n"
      "1:"
      : "+D"(turn.from), "+S"(turn.to)
      :
      : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2",
        "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
#ifdef __AVX512F__
        "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27",
        "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7",
#endif
        "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)", "memory", "cc");
}
#else
void make_room(Turn turn);
#endif

}  // namespace simt
