// Reads the text of a statement of inline PTX. PTX ISA, "Syntax".
#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "simt/ptx/ptx_code.h"

namespace simt {
namespace {

struct TypeName {
  const char* name;
  PtxType type;
  int bytes;
};
constexpr TypeName types[] = {
    {"pred", PtxType::pred, 1},     {"u8", PtxType::u8, 1},   {"s8", PtxType::s8, 1},     {"b8", PtxType::b8, 1},
    {"u16", PtxType::u16, 2},       {"s16", PtxType::s16, 2}, {"b16", PtxType::b16, 2},   {"u32", PtxType::u32, 4},
    {"s32", PtxType::s32, 4},       {"b32", PtxType::b32, 4}, {"u64", PtxType::u64, 8},   {"s64", PtxType::s64, 8},
    {"b64", PtxType::b64, 8},       {"f16", PtxType::f16, 2}, {"bf16", PtxType::bf16, 2}, {"f16x2", PtxType::f16x2, 4},
    {"bf16x2", PtxType::bf16x2, 4}, {"f32", PtxType::f32, 4}, {"f64", PtxType::f64, 8},
};

class Reader {
 public:
  Reader(const char* text, const PtxOperand* operands, int count) : operands_(operands), count_(count) {
    for (const char* at = text; *at != 0; ++at) {  // comments become spaces
      const char* end = nullptr;
      if (at[0] == '/' && at[1] == '/') end = at + std::strcspn(at, "\n");
      if (at[0] == '/' && at[1] == '*')
        end = std::strstr(at + 2, "*/") ? std::strstr(at + 2, "*/") + 2 : at + std::strlen(at);
      if (end != nullptr) {
        text_ += ' ';
        at = end - 1;
      } else {
        text_ += *at;
      }
    }
  }

  PtxCode code() {
    for (skip(); at_ < text_.size() && code_.mistake.empty(); skip()) statement();
    for (PtxInstruction& instruction : code_.instructions)
      for (PtxArgumentOf& argument : instruction.arguments)
        for (PtxValue& value : argument.values)
          if (value.kind == PtxValue::label) {
            const auto label = labels_.find(value.text);
            if (label == labels_.end())
              mistake("nothing of this name: " + value.text);
            else
              value.value = label->second;
          }
    code_.registers = registers_.size();
    return std::move(code_);
  }

 private:
  void mistake(const std::string& what) {
    if (code_.mistake.empty()) code_.mistake = what;
  }
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::string word() {
    skip();
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || std::strchr("_$.:<>", text_[at_])) &&
           !(text_[at_] == ':' && text_[at_ + 1] != ':' && text_[at_ - 1] != ':'))
      ++at_;
    return text_.substr(begin, at_ - begin);
  }

  void statement() {
    if (take('{') || take('}') || take(';')) return;
    const std::size_t begin = at_;
    PtxInstruction instruction;
    if (take('@')) {
      instruction.guarded = true;
      const bool negated = take('!');
      instruction.guard = value();
      instruction.guard.negated = negated;
    }
    const std::string name = word();
    if (!instruction.guarded && take(':')) {
      labels_[name] = code_.instructions.size();
      return;
    }
    if (name == ".reg") return declare();
    if (name.empty()) return mistake("the engine cannot read: " + text_.substr(begin));
    for (std::size_t from = 0; from <= name.size();) {
      const std::size_t dot = std::min(name.find('.', from), name.size());
      instruction.pieces.push_back(name.substr(from, dot - from));
      from = dot + 1;
    }
    instruction.opcode = name;
    while (code_.mistake.empty() && !take(';')) {
      skip();
      if (at_ >= text_.size()) break;  // the last ";" may be missing
      if (!instruction.arguments.empty() && !take(','))
        return mistake("the engine cannot read: " + text_.substr(begin));
      instruction.arguments.push_back(argument());
    }
    instruction.text = text_.substr(begin, at_ - begin);
    std::replace_if(
        instruction.text.begin(), instruction.text.end(), [](unsigned char c) { return std::isspace(c); }, ' ');
    instruction.execute = choose_ptx(instruction);
    code_.instructions.push_back(std::move(instruction));
  }

  // .reg .b32 a, b<4>;
  void declare() {
    word();  // the type: an instruction says how it takes a register
    do {
      const std::string name = word();
      const auto several = name.find('<');
      if (several == std::string::npos) {
        registers_.try_emplace(name, registers_.size());
      } else {
        const int count = std::atoi(name.c_str() + several + 1);
        for (int i = 0; i < count; ++i)
          registers_.try_emplace(name.substr(0, several) + std::to_string(i), registers_.size());
      }
    } while (take(','));
    take(';');
  }

  PtxArgumentOf argument() {
    PtxArgumentOf argument;
    if (take('[')) {
      argument.form = PtxArgumentOf::address;
      argument.values.push_back(value());
      if (take('+')) argument.offset = static_cast<std::int64_t>(value().value);
      skip();
      if (at_ < text_.size() && text_[at_] == '-') argument.offset = static_cast<std::int64_t>(value().value);
      if (take(',') && take('{')) {
        do argument.also.push_back(value());
        while (take(','));
        take('}');
      }
      if (!take(']')) mistake("an address without its ]");
    } else if (take('{')) {
      argument.form = PtxArgumentOf::vector;
      do argument.values.push_back(value());
      while (take(','));
      if (!take('}')) mistake("a vector without its }");
    } else {
      const bool negated = take('!');
      argument.values.push_back(value());
      argument.values[0].negated = negated;
      if (take('|')) argument.also.push_back(value());
    }
    return argument;
  }

  PtxValue value() {
    PtxValue value;
    skip();
    const char c = at_ < text_.size() ? text_[at_] : 0;
    if (c == '%') {
      ++at_;
      if (at_ < text_.size() && text_[at_] == '%') ++at_;
      if (at_ < text_.size() && text_[at_] == '[') {
        const std::size_t end = text_.find(']', at_);
        const std::string name = text_.substr(at_ + 1, end - at_ - 1);
        at_ = end == std::string::npos ? text_.size() : end + 1;
        value.kind = PtxValue::operand;
        for (value.value = 0; value.value < static_cast<std::uint64_t>(count_); ++value.value)
          if (operands_[value.value].name != nullptr && name == operands_[value.value].name) return value;
        mistake("the statement has no operand " + name);
      } else if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) {
        char* end;
        value.kind = PtxValue::operand;
        value.value = std::strtoul(text_.c_str() + at_, &end, 10);
        at_ = static_cast<std::size_t>(end - text_.c_str());
        if (value.value >= static_cast<std::uint64_t>(count_))
          mistake("the statement has no operand %" + std::to_string(value.value));
      } else {
        value.kind = PtxValue::special;
        value.text = word();
      }
    } else if (std::isdigit(static_cast<unsigned char>(c)) || c == '-') {
      number(value);
    } else {
      value.text = word();
      const auto found = registers_.find(value.text);
      if (value.text == "_") {
        value.kind = PtxValue::sink;
      } else if (found != registers_.end()) {
        value.kind = PtxValue::local;
        value.value = found->second;
      } else if (value.text == "WARP_SZ") {
        value.kind = PtxValue::number;
        value.value = 32;
      } else {
        value.kind = PtxValue::label;
        if (value.text.empty()) mistake("the engine cannot read: " + text_.substr(at_));
      }
    }
    return value;
  }

  // 12, -3, 0x1f, 0f3F800000 (a float by its bits), 0d.., 1.5
  void number(PtxValue& value) {
    const char* begin = text_.c_str() + at_;
    char* end;
    value.kind = PtxValue::number;
    if (begin[0] == '0' && (std::tolower(begin[1]) == 'f' || std::tolower(begin[1]) == 'd')) {
      value.value = std::strtoull(begin + 2, &end, 16);
    } else {
      value.value = static_cast<std::uint64_t>(begin[0] == '-' ? std::strtoll(begin, &end, 0)
                                                               : static_cast<long long>(std::strtoull(begin, &end, 0)));
      if (*end == '.' || *end == 'e') {
        value.kind = PtxValue::decimal;
        value.decimal_value = std::strtod(begin, &end);
      } else if (*end == 'U') {
        ++end;
      }
    }
    if (end == begin) ++end;
    at_ += static_cast<std::size_t>(end - begin);
  }

  std::string text_;
  const PtxOperand* operands_;
  int count_;
  std::size_t at_ = 0;
  PtxCode code_;
  std::map<std::string, std::size_t> registers_, labels_;
};

}  // namespace

PtxType ptx_type(std::string_view name) {
  const auto found = std::find_if(std::begin(types), std::end(types), [=](auto& t) { return t.name == name; });
  return found != std::end(types) ? found->type : PtxType::none;
}

int ptx_bytes(PtxType type) {
  const auto found = std::find_if(std::begin(types), std::end(types), [=](auto& t) { return t.type == type; });
  return found != std::end(types) ? found->bytes : 8;
}

bool PtxInstruction::has(std::string_view piece) const {
  return std::find(pieces.begin(), pieces.end(), piece) != pieces.end();
}

bool PtxInstruction::only(std::size_t known, std::initializer_list<std::string_view> allowed) const {
  return std::all_of(
      pieces.begin() + static_cast<std::ptrdiff_t>(std::min(known, pieces.size())), pieces.end(), [&](auto& piece) {
        return ptx_type(piece) != PtxType::none || std::find(allowed.begin(), allowed.end(), piece) != allowed.end();
      });
}

PtxType PtxInstruction::last_type() const {
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece)
    if (const PtxType type = ptx_type(*piece); type != PtxType::none) return type;
  return PtxType::none;
}

PtxType PtxInstruction::type_before_last() const {
  bool last = true;
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece)
    if (const PtxType type = ptx_type(*piece); type != PtxType::none && !std::exchange(last, false)) return type;
  return PtxType::none;
}

PtxCode read_ptx(const char* text, const PtxOperand* operands, int count) {
  return Reader(text, operands, count).code();
}

}  // namespace simt
