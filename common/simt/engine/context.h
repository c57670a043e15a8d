// Where a fiber goes on: what is left of a stack whose code has made room for another's.
//
// On x86-64 a switch is ten instructions, inlined where a thread waits: the compiler keeps what it needs of the
// registers, and the control words of the floating point units, which no kernel changes, stay as they are. On other
// processors Boost.Context does it.
#pragma once

#include <cstddef>

#if defined(__x86_64__) && defined(__LP64__)
#define SIMT_OWN_SWITCH 1
#else
#define SIMT_OWN_SWITCH 0
#include <boost/context/detail/fcontext.hpp>
#endif

namespace simt {

class Context {
 public:
  // `main` begins on this stack when somebody goes there, and never returns.
  void make(char* stack, std::size_t bytes, void (*main)());
  void forget() { *this = {}; }
  bool made() const { return stack_ != nullptr; }

  // Leaves this stack, to which this context brings back whoever goes there, for another one.
  void leave_for(Context& other);

 private:
  void* stack_ = nullptr;
#if SIMT_OWN_SWITCH
  void* frame_ = nullptr;
  void (*code_)() = nullptr;
#else
  static void begin(boost::context::detail::transfer_t from);
  void (*main_)() = nullptr;
#endif
};

#if SIMT_OWN_SWITCH

inline void Context::make(char* stack, std::size_t bytes, void (*main)()) {
  // As if the function had been called from address 0, where stack traces end.
  auto* top = reinterpret_cast<void**>(stack + bytes / 16 * 16 - 16);
  top[0] = top[1] = nullptr;
  stack_ = top + 1;
  frame_ = nullptr;
  code_ = main;
}

__attribute__((always_inline)) inline void Context::leave_for(Context& other) {
  static_assert(offsetof(Context, stack_) == 0 && offsetof(Context, frame_) == 8 && offsetof(Context, code_) == 16);
  Context *self = this, *to = &other;
  asm volatile(
      "movq %%rsp, (%0)\n\t"
      "movq %%rbp, 8(%0)\n\t"
      "leaq 1f(%%rip), %%rax\n\t"
      "movq %%rax, 16(%0)\n\t"
      "movq (%1), %%rsp\n\t"
      "movq 8(%1), %%rbp\n\t"
      "jmpq *16(%1)\n"
      "1:"
      : "+D"(self), "+S"(to)
      :
      : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2",
        "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
        "memory", "cc");
}

#else

inline void Context::begin(boost::context::detail::transfer_t from) {
  auto** const fibers = static_cast<Context**>(from.data);
  fibers[0]->stack_ = from.fctx;
  fibers[1]->main_();
}

inline void Context::make(char* stack, std::size_t bytes, void (*main)()) {
  stack_ = boost::context::detail::make_fcontext(stack + bytes, bytes, begin);
  main_ = main;
}

// Whoever comes back says which stack it left, so that its context can be kept.
inline void Context::leave_for(Context& other) {
  Context* fibers[] = {this, &other};
  const boost::context::detail::transfer_t from = boost::context::detail::jump_fcontext(other.stack_, fibers);
  (*static_cast<Context**>(from.data))->stack_ = from.fctx;
}

#endif

}  // namespace simt
