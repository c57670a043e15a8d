// A statement of inline PTX, read, and what it takes to carry out its instructions.
//
// To add an instruction: a function that looks at the modifiers (PtxInstruction::pieces), notes in the instruction what
// it needs, and returns the function that carries it out, or null for modifiers that it does not know; and a line in
// the table of ptx.cc. A name there stands for all instructions that begin with it; of several names the longest
// counts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "simt/engine/diagnosis.h"
#include "simt/ptx/ptx.h"

namespace simt {

class Worker;

enum class PtxType : std::uint8_t {
  none,
  pred,
  u8,
  s8,
  b8,
  u16,
  s16,
  b16,
  u32,
  s32,
  b32,
  u64,
  s64,
  b64,
  f16,
  bf16,
  f16x2,
  bf16x2,
  f32,
  f64
};

PtxType ptx_type(std::string_view name);  // none if it is not one
int ptx_bytes(PtxType type);

// A register, a number, an operand of the statement, ..
struct PtxValue {
  enum Kind : std::uint8_t { operand, local, number, decimal, special, sink, label };
  Kind kind = sink;
  bool negated = false;     // of a predicate
  std::uint64_t value = 0;  // index of an operand or a register, a number's bits, or where a label is
  double decimal_value = 0;
  std::string text;  // of a special register or a label
};

// One value; {several}; or [an address, and what follows it].
struct PtxArgumentOf {
  enum Form : std::uint8_t { single, vector, address };
  Form form = single;
  std::vector<PtxValue> values;
  std::int64_t offset = 0;     // of an address
  std::vector<PtxValue> also;  // after "|", or an address's coordinates
};

struct PtxInstruction;
class PtxRun;
using PtxExecute = void (*)(PtxRun& run, const PtxInstruction& instruction);

struct PtxInstruction {
  std::string text;
  std::string opcode;
  std::vector<std::string> pieces;  // of the opcode
  bool guarded = false;
  PtxValue guard;
  std::vector<PtxArgumentOf> arguments;
  PtxExecute execute = nullptr;

  // What the function that chose `execute` noted.
  PtxType type = PtxType::none, from = PtxType::none;
  int count = 1, mode = 0;
  std::uint64_t (*calculate)(std::uint64_t, std::uint64_t, std::uint64_t) = nullptr;

  bool has(std::string_view piece) const;
  // Whether every piece after the first `known` ones is one of these, or a type.
  bool only(std::size_t known, std::initializer_list<std::string_view> allowed) const;
  // The last type that it names, and the one before.
  PtxType last_type() const;
  PtxType type_before_last() const;
};

using PtxChoose = PtxExecute (*)(PtxInstruction& instruction);

struct PtxCode {
  std::vector<PtxInstruction> instructions;
  std::size_t registers = 0;
  std::string mistake;  // in the text itself
};

PtxCode read_ptx(const char* text, const PtxOperand* operands, int count);
PtxExecute choose_ptx(PtxInstruction& instruction);  // null if the engine does not know it
PtxExecute choose_ptx_arithmetic(PtxInstruction& instruction);

// Clusters and what else compute capability 9.0 adds (ptx_hopper.cc).
std::uint64_t cluster_register(PtxRun& run, const std::string& name, bool& known);
PtxExecute choose_mapa(PtxInstruction& instruction);
PtxExecute choose_getctarank(PtxInstruction& instruction);
PtxExecute choose_barrier_cluster(PtxInstruction& instruction);
PtxExecute choose_mbarrier(PtxInstruction& instruction);
PtxExecute choose_fence_mbarrier_init(PtxInstruction& instruction);
PtxExecute choose_fence_proxy_async(PtxInstruction& instruction);
PtxExecute choose_bulk_copy(PtxInstruction& instruction);
PtxExecute choose_wgmma(PtxInstruction& instruction);

// One thread carries out one statement.
class PtxRun {
 public:
  PtxRun(Worker& worker, const Site& site, const PtxCode& code, PtxOperand* operands, std::uint64_t* registers)
      : worker(worker), site(site), code_(code), operands_(operands), registers_(registers) {}

  void all();

  std::uint64_t get(const PtxValue& value, PtxType type);
  void set(const PtxValue& value, std::uint64_t bits, PtxType type);
  std::uint64_t get(const PtxArgumentOf& argument, PtxType type) { return get(argument.values[0], type); }
  void set(const PtxArgumentOf& argument, std::uint64_t bits, PtxType type) { set(argument.values[0], bits, type); }
  void* place(const PtxValue& value) const;  // PtxOperand::place; null if it has none
  void jump(const PtxValue& label) { next_ = label.value; }
  void end() { next_ = code_.instructions.size(); }

  // The address of an argument in a state space: "shared" ones are addresses of shared memory, all others pointers.
  char* pointer(const PtxArgumentOf& argument, bool shared);
  // What the instruction does to memory, for all checks and counts.
  enum class Touch { read, write, update };
  // `i` says whether the access is one that flags are made of, and whether it releases.
  void note(const void* p, std::size_t bytes, Touch touch, const PtxInstruction& i);
  [[noreturn]] void fail(cudaError_t code, const std::string& what);

  Worker& worker;
  const Site site;

 private:
  const PtxCode& code_;
  PtxOperand* operands_;
  std::uint64_t* registers_;
  std::size_t next_ = 0;
};

}  // namespace simt
