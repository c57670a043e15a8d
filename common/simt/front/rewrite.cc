#include "simt/front/rewrite.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "simt/front/tokens.h"

namespace simt::front {
namespace {

using Place = std::size_t;  // of a token in the code: directives and system headers are not counted
constexpr Place nowhere = ~Place(0);

// Words before a parenthesis that does not begin a function's parameters.
bool takes_parentheses(std::string_view word) {
  static const std::set<std::string_view> words = {
      "__attribute__", "__align__", "__builtin_align__", "alignas",          "decltype",
      "noexcept",      "explicit",  "__launch_bounds__", "__cluster_dims__", "__maxnreg__",
      "requires",      "typeof",    "__typeof__",        "__block_size__"};
  return words.contains(word);
}

bool is_cuda_keyword(std::string_view word) {
  static const std::set<std::string_view> words = {"__global__",   "__device__",      "__host__",
                                                   "__shared__",   "__constant__",    "__managed__",
                                                   "__noinline__", "__forceinline__", "__grid_constant__"};
  return words.contains(word);
}

bool is_statement_keyword(std::string_view word) {
  return word == "return" || word == "else" || word == "do" || word == "case" || word == "if" || word == "while";
}

struct Edit {
  bool replaced = false;
  std::string text;  // in its place
  std::string before, after;
};

// A function's or a variable's declaration.
struct Declaration {
  Place begin = nowhere;  // its first token, `template` included
  Place end = nowhere;    // the ; or { that ends it
  bool is_function = false;
  bool is_operator = false;
  std::string_view name;
  Place parameters = nowhere;                    // the parenthesis before them
  Place body = nowhere;                          // the brace before it
  std::vector<std::string> template_parameters;  // as they are written
  bool is_template = false;
  std::vector<std::string_view> variables;
};

struct Scope {
  enum Kind { names, type, function, block, other, member } kind;  // member: in a constructor's list
  bool device = false;                                             // a type: it has functions of the device
  std::string name;                                                // of a namespace
  bool host = true;                                                // the host may run it, too
  bool is_template = false;
};

class Rewriter {
 public:
  Rewriter(std::string_view text, bool inlining, bool relaxed)
      : tokens_(tokens_of(text)), inlining_(inlining), relaxed_(relaxed) {
    bool engine = false;
    std::pair<std::string_view, int> line = {"", 1};
    const auto pass = [&](std::string_view text) {
      line.second += static_cast<int>(std::count(text.begin(), text.end(), '\n'));
    };
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const Token& token = tokens_[i];
      pass(token.space);
      if (token.kind != Kind::line && token.kind != Kind::foreign) {
        code_.push_back(i);
        of_the_engine_.push_back(engine);
        lines_.push_back(line);
      }
      pass(token.text);
      if (token.kind != Kind::line) continue;
      engine = names_engine(token.text, engine);
      follow(token.text, line);
    }
    edits_.resize(code_.size());
    find_partners();
  }

  // `host`: what the file is where __CUDA_ARCH__ is not defined. Its functions of the host take the place of this
  // file's; a function of both sides becomes both.
  Rewritten run(std::optional<Rewriter> host = std::nullopt) {
    find_kernels();
    find_own_allocators();
    walk();
    guard_functions();
    if (host) {
      host->find_kernels();
      host->find_own_allocators();
      host->walk();
      host->guard_functions();
      host->find_mentions(/*says_host=*/true, /*says_device=*/false);
      take_bodies(*host);
    }
    find_mentions(/*says_host=*/!host, /*says_device=*/true);
    find_calls_of_the_host();
    if (host) mistakes_.insert(mistakes_.end(), host->mistakes_.begin(), host->mistakes_.end());
    put_in_order(mistakes_);
    limit_constants();
    Rewritten rewritten;
    rewritten.text = text();
    rewritten.mistakes = std::move(mistakes_);
    rewritten.kernels = std::move(kernels_);
    rewritten.has_main = has_main_;
    return rewritten;
  }

 private:
  // --- The two sides ---

  struct Function {
    Place open;  // the brace before its body
    std::pair<std::string, int> line;
    bool on_host, on_device;
  };

  bool same_tokens(Place from, Place to, const Rewriter& other, Place its_from, Place its_to) const {
    if (to - from != its_to - its_from) return false;
    for (Place i = 0; i < to - from; ++i)
      if (at(from + i) != other.at(its_from + i)) return false;
    return true;
  }

  void take_bodies(const Rewriter& host) {
    if (same_tokens(0, size(), host, 0, host.size())) return;
    std::map<std::pair<std::string, int>, std::vector<Function>> theirs;
    for (const Function& function : host.functions())
      if (function.on_host) theirs[function.line].push_back(function);
    std::map<std::pair<std::string, int>, std::size_t> seen;  // of several on one line
    for (const Function& own : functions()) {
      if (!own.on_host) continue;
      const auto found = theirs.find(own.line);
      const std::size_t number = seen[own.line]++;
      if (found == theirs.end() || number >= found->second.size()) continue;
      const Place from = found->second[number].open, to = host.partner_[from], end = partner_[own.open];
      if (to == nowhere || end == nowhere || same_tokens(own.open, end, host, from, to)) continue;
      const std::string place = "\n# " + std::to_string(own.line.second) + " \"" + own.line.first + "\"\n";
      const auto [file, line] = line_of(end);
      const std::string after = "\n# " + std::to_string(line) + " \"" + file + "\"\n";
      const std::string body = place + host.text(host.code_[from], host.code_[to] + 1);
      if (own.on_device) {
        edits_[own.open].before +=
            "{ if (!::std::is_constant_evaluated() && !::simt::in_kernel())" + body + place + "else ";
        edits_[end].after += "}";
      } else {
        for (Place i = own.open; i <= end; ++i) edits_[i] = {/*replaced=*/true, "", "", ""};
        edits_[own.open].before = body;
        edits_[end].after = after;
      }
    }
  }

  // With bodies, that are not within others.
  std::vector<Function> functions() const {
    std::vector<Function> all = functions_;
    for (Function& function : all) function.line = line_of(function.open);
    return all;
  }

  // --- Tokens ---

  Place size() const { return code_.size() - 1; }  // without the end
  Kind kind(Place i) const { return tokens_[code_[std::min(i, size())]].kind; }
  std::string_view at(Place i) const { return i < size() ? tokens_[code_[i]].text : std::string_view(); }
  bool is_word(Place i) const { return kind(i) == Kind::word; }

  void replace(Place i, std::string text) {
    edits_[i].replaced = true;
    edits_[i].text = std::move(text);
  }
  void remove(Place from, Place to) {
    for (Place i = from; i < to; ++i) replace(i, "");
  }

  std::string words(Place from, Place to) const {
    std::string text;
    for (Place i = from; i < to; ++i) {
      if (is_cuda_keyword(at(i)) || at(i) == "__restrict__" || at(i) == "__restrict") continue;
      const bool glued = text.empty() || !(is_word(i) || kind(i) == Kind::number) ||
                         !(std::isalnum(static_cast<unsigned char>(text.back())) || text.back() == '_' ||
                           text.back() == '>' || text.back() == '*');
      text += (glued ? "" : " ") + std::string(at(i));
    }
    return text;
  }

  void find_partners() {
    partner_.assign(code_.size(), nowhere);
    std::vector<Place> open;
    for (Place i = 0; i < size(); ++i) {
      if (kind(i) != Kind::punctuation) continue;
      const std::string_view text = at(i);
      if (text == "(" || text == "[" || text == "{") open.push_back(i);
      const std::string_view opens = text == ")" ? "(" : text == "]" ? "[" : text == "}" ? "{" : "";
      if (opens.empty()) continue;
      while (!open.empty() && at(open.back()) != opens) open.pop_back();  // the compiler will say what is wrong
      if (open.empty()) continue;
      partner_[i] = open.back();
      partner_[open.back()] = i;
      open.pop_back();
    }
  }

  // After the bracket's partner; after the token itself if it has none.
  Place past(Place i) const { return partner_[i] == nowhere || partner_[i] < i ? i + 1 : partner_[i] + 1; }

  // The > of the < at i, if it is a bracket; else nowhere.
  Place close_of_angle(Place i) const {
    int depth = 0;
    for (; i < size(); ++i) {
      const std::string_view text = at(i);
      if (text == "<") ++depth;
      if (text == ">" && --depth == 0) return i;
      if (text == ";" || text == "}") return nowhere;
      if (text == "(" || text == "[" || text == "{") i = past(i) - 1;
    }
    return nowhere;
  }

  Place open_of_angle(Place i) const {
    int depth = 0;
    for (;; --i) {
      const std::string_view text = at(i);
      if (text == ">") ++depth;
      if (text == "<" && --depth == 0) return i;
      if (text == ";" || text == "{") return nowhere;
      if ((text == ")" || text == "]" || text == "}") && partner_[i] != nowhere) i = partner_[i];
      if (i == 0) return nowhere;
    }
  }

  // Where the pieces between commas begin and end, of [from, to).
  std::vector<std::pair<Place, Place>> split(Place from, Place to) const {
    std::vector<std::pair<Place, Place>> pieces;
    Place begin = from;
    for (Place i = from; i < to;) {
      const std::string_view text = at(i);
      if (text == ",") pieces.emplace_back(begin, i), begin = i + 1;
      Place angle = nowhere;
      if (text == "<") angle = close_of_angle(i);
      if (angle != nowhere && angle < to)
        i = angle + 1;
      else
        i = text == "(" || text == "[" || text == "{" ? past(i) : i + 1;
    }
    if (begin < to) pieces.emplace_back(begin, to);
    return pieces;
  }

  // --- Declarations ---

  Place statement_begin(Place i) const {
    while (i > 0) {
      const std::string_view before = at(i - 1);
      if (before == ";" || before == "{" || before == "}") break;
      if (before == ":" && i > 1 && (at(i - 2) == "public" || at(i - 2) == "private" || at(i - 2) == "protected"))
        break;
      if (before == "(" && partner_[i - 1] != nowhere) break;  // in parameters
      i = (before == ")" || before == "]") && partner_[i - 1] != nowhere ? partner_[i - 1] : i - 1;
    }
    return i;
  }

  // The declaration that the keyword at i is in.
  Declaration declaration(Place keyword) const {
    Declaration d;
    Place i = d.begin = statement_begin(keyword);
    while (at(i) == "template" && at(i + 1) == "<") {
      const Place close = close_of_angle(i + 1);
      if (close == nowhere) break;
      d.is_template = true;
      d.template_parameters.clear();
      for (const auto& [from, to] : split(i + 2, close)) d.template_parameters.push_back(words(from, to));
      i = close + 1;
    }
    for (; i < size();) {
      const std::string_view text = at(i);
      if (text == "operator") {
        d.is_operator = d.is_function = true;
        d.name = text;
        i += at(i + 1) == "(" ? 3 : 2;
        while (i < size() && at(i) != "(") ++i;
        d.parameters = i;
        break;
      }
      if (text == "(") {
        if (takes_parentheses(at(i - 1))) {
          i = past(i);
          continue;
        }
        if (at(i + 1) == "*") break;  // a pointer to a function
        if (initialises(d, i)) break;
        d.is_function = true;
        d.parameters = i;
        const Place angle = at(i - 1) == ">" ? open_of_angle(i - 1) : nowhere;
        d.name = at(angle == nowhere ? i - 1 : angle - 1);
        break;
      }
      if (text == ";" || text == "=" || text == "{" || text == ",") break;
      if (text == "[") {
        if (at(i + 1) != "[") break;
        i = past(i);
        continue;
      }
      const Place angle = text == "<" ? close_of_angle(i) : nowhere;
      i = angle == nowhere ? i + 1 : angle + 1;
    }
    if (d.is_function)
      find_body(d);
    else
      find_variables(d);
    return d;
  }

  // Whether the parenthesis begins a variable's initial value, as in `__device__ int n(0);`, and not parameters.
  bool initialises(const Declaration& d, Place parenthesis) const {
    const auto says = [&](std::string_view word) { return has(d.begin, parenthesis, word); };
    if (!says("__device__") && !says("__constant__") && !says("__managed__")) return false;
    const Place after = past(parenthesis);
    return (at(after) == ";" || at(after) == ",") && has_values(parenthesis);
  }

  // Whether the first thing in these parentheses is an expression and not a parameter.
  bool has_values(Place parenthesis) const {
    const auto things = split(parenthesis + 1, past(parenthesis) - 1);
    if (things.empty()) return false;
    const auto [from, to] = things[0];
    if (!is_word(from) && at(from) != "::" && at(from) != "[" && at(from) != "...") return true;
    static const std::set<std::string_view> values = {"true", "false", "nullptr", "sizeof", "static_cast"};
    if (values.contains(at(from))) return true;
    Place name = nowhere;
    for (Place i = from; i < to;) {
      const std::string_view text = at(i);
      static const std::set<std::string_view> operators = {"+", "-", "/", "%", "^", "?", "|", "!", "."};
      if (operators.contains(text)) return true;
      if (text == "=") return false;  // a parameter's default
      if ((text == "*" || text == "&") && (kind(i + 1) == Kind::number || at(i + 1) == "(")) return true;
      if (text == "(" && (at(i + 1) == "*" || at(i + 1) == "&")) return false;  // a pointer or reference, in a type
      if (text == "(" && !takes_parentheses(at(i - 1)))                         // max(), dim3(2)
        return at(i + 1) == ")" ? i + 2 == to : has_values(i);
      if (is_word(i)) name = i;
      const Place angle = text == "<" ? close_of_angle(i) : nowhere;
      i = text == "(" || text == "[" || text == "{" ? past(i) : angle == nowhere ? i + 1 : angle + 1;
    }
    return name == to - 1 && (name == from || at(name - 1) == "::") && is_constant(at(name));
  }

  // Whether somewhere in the file stands `constexpr int name = ..`, or an enumeration has the name.
  bool is_constant(std::string_view name) const {
    for (Place i = 1; i < size(); ++i) {
      if (at(i) != name) continue;
      const std::string_view next = at(i + 1);
      if (is_word(i - 1) && at(i - 1) != "using" && (next == "=" || next == "{" || next == "[") &&
          at(i - 1) != "struct" && at(i - 1) != "class" && at(i - 1) != "union" && at(i - 1) != "enum")
        return true;
      if ((at(i - 1) == "{" || at(i - 1) == ",") && (next == "," || next == "}" || next == "=") && in_enumeration(i))
        return true;
    }
    return false;
  }

  bool in_enumeration(Place i) const {
    while (--i > 0 && at(i) != "{" && at(i) != ";" && at(i) != "(")
      if ((at(i) == ")" || at(i) == "}") && partner_[i] != nowhere) i = partner_[i];
    return at(i) == "{" && has(statement_begin(i), i, "enum");
  }

  void find_body(Declaration& d) const {
    Place i = past(d.parameters);
    while (i < size()) {
      const std::string_view text = at(i);
      if (text == "{") {
        d.body = d.end = i;
        return;
      }
      if (text == ";" || text == "=") break;
      if (text == ":") {  // members' initial values
        ++i;
        while (i < size() && at(i) != "{" && at(i) != ";") {
          while (i < size() && at(i) != "(" && at(i) != "{" && at(i) != ";") ++i;
          i = past(i);
          if (at(i) != ",") break;
          ++i;
        }
        continue;
      }
      i = text == "(" || text == "[" ? past(i) : i + 1;
    }
    d.end = i;
  }

  void find_variables(Declaration& d) const {
    Place end = d.begin;
    while (end < size() && at(end) != ";") {
      const std::string_view text = at(end);
      if (text == "}") break;
      end = text == "(" || text == "[" || text == "{" ? past(end) : end + 1;
    }
    d.end = end;
    if (at(end) != ";") return;
    for (const auto& [from, to] : split(d.begin, end)) {
      Place name = nowhere;
      bool defines_type = false;
      for (Place i = from; i < to;) {
        const std::string_view text = at(i);
        defines_type = defines_type || text == "struct" || text == "class" || text == "union" || text == "enum";
        if (text == "{" && defines_type) {  // __constant__ struct { int n; } problem;
          i = past(i);
          defines_type = false;
          name = nowhere;
          continue;
        }
        if (text == "(" && at(i + 1) == "*") {
          name = i + 2;
          break;
        }
        if (text == "=" || text == "{" || (text == "(" && !takes_parentheses(at(i - 1)))) break;
        if (text == "[") {
          if (at(i + 1) != "[") break;
          i = past(i);
          continue;
        }
        if (is_word(i) && !takes_parentheses(text)) name = i;
        const Place angle = text == "<" ? close_of_angle(i) : nowhere;
        i = text == "(" ? past(i) : angle == nowhere ? i + 1 : angle + 1;
      }
      if (name != nowhere) d.variables.push_back(at(name));
    }
  }

  bool has(Place from, Place to, std::string_view word) const {
    for (Place i = from; i < to; ++i)
      if (at(i) == word) return true;
    return false;
  }

  bool has(const Declaration& d, std::string_view word) const {
    return has(d.begin, d.is_function ? d.parameters : d.end, word);
  }

  bool calls_itself(const Declaration& d) const {
    for (Place i = d.body; i < partner_[d.body]; ++i)
      if (at(i) == d.name && (at(i + 1) == "(" || at(i + 1) == "<")) return true;
    return false;
  }

  // --- Kernels ---

  struct Known {
    std::set<std::string> parameter_types;  // of every overload
    std::size_t template_parameters = 0;
    bool pack = false;
    bool default_arguments = false;
  };

  // Of the names of kernels, all that decides how they are launched, wherever in the file they are.
  void find_kernels() {
    for (Place i = 0; i < size(); ++i) {
      if (at(i) == "cudaLaunchKernel" || at(i) == "cudaLaunchCooperativeKernel" || at(i) == "cudaKernelNodeParams")
        by_pointer_ = true;
      if (at(i) != "__global__") continue;
      const Declaration d = declaration(i);
      if (!d.is_function) continue;
      Known& known = known_[std::string(d.name)];
      std::string types;
      for (const Parameter& parameter : parameters(d)) types += parameter.type + ",";
      known.parameter_types.insert(types);
      known.template_parameters = std::max(known.template_parameters, d.template_parameters.size());
      for (const std::string& parameter : d.template_parameters)
        known.pack = known.pack || parameter.find("...") != std::string::npos;
      known.default_arguments = known.default_arguments || has(d.parameters, past(d.parameters), "=");
    }
    // Functions of the host with a kernel's name: its launch is told from them by its arguments, too.
    for (Place i = 1; i < size(); ++i) {
      if (at(i + 1) != "(" || !is_word(i) || !is_word(i - 1) || is_statement_keyword(at(i - 1))) continue;
      if (of_the_engine_[i]) continue;
      const auto found = known_.find(std::string(at(i)));
      if (found == known_.end() || at(past(i + 1)) != "{") continue;
      if (!has(statement_begin(i), i, "__global__")) found->second.parameter_types.insert("of the host");
    }
  }

  std::vector<Parameter> parameters(const Declaration& d) const {
    std::vector<Parameter> found;
    for (const auto& [from, to] : split(d.parameters + 1, past(d.parameters) - 1)) {
      Place end = from;
      while (end < to && at(end) != "=") ++end;
      Place type_end = end;  // an array's brackets are after the name
      while (type_end > from + 1 && at(type_end - 1) == "]" && partner_[type_end - 1] != nowhere)
        type_end = partner_[type_end - 1];
      const bool named = type_end > from + 1 && is_word(type_end - 1);
      Parameter parameter{words(from, named ? type_end - 1 : type_end), std::string(named ? at(type_end - 1) : "")};
      if (type_end != end) parameter.type += "*";
      if (parameter.type != "void") found.push_back(std::move(parameter));
    }
    return found;
  }

  void note_kernel(const Declaration& d, Place keyword) {
    if (d.body == nowhere) return;
    Kernel kernel;
    kernel.name = d.name;
    for (const Scope& scope : scopes_)
      if (scope.kind == Scope::names && !scope.name.empty()) kernel.within.push_back(scope.name);
    kernel.template_parameters = d.template_parameters;
    kernel.parameters = parameters(d);
    std::tie(kernel.file, kernel.line) = line_of(keyword);
    kernels_.push_back(std::move(kernel));
    const Known& known = known_[std::string(d.name)];
    if (d.is_template || known.parameter_types.size() > 1 || known.default_arguments)
      edits_[d.body].after += " if (::simt::dry_call()) return;";
    if (by_pointer_) name_itself(d, kernels_.back());
  }

  // Has the engine know the kernel by its address.
  void name_itself(const Declaration& d, const Kernel& kernel) {
    if (!scopes_.empty() && scopes_.back().kind != Scope::names) return;
    std::string types, arguments;
    for (const Parameter& parameter : kernel.parameters) {
      if (parameter.type.find('(') != std::string::npos) return;
      types += (types.empty() ? "" : ", ") + parameter.type;
    }
    for (const std::string& parameter : kernel.template_parameters) {
      std::string name = parameter.substr(0, parameter.find('='));
      // To a function, or an array.
      if (const std::size_t pointer = std::min(name.find("(*"), name.find("(&")); pointer != std::string::npos)
        name = name.substr(pointer, name.find(')', pointer) - pointer);
      name.erase(name.find_last_not_of(' ') + 1);
      const std::size_t before = name.find_last_of(" .>*&");
      if (before == std::string::npos) return;  // it has no name
      arguments += (arguments.empty() ? "" : ", ") + name.substr(before + 1) +
                   (name.find("...") != std::string::npos ? "..." : "");
    }
    edits_[d.body].after += " (void)&::simt::NamedKernel<static_cast<void (*)(" + types + ")>(&" + kernel.name +
                            (d.is_template ? "<" + arguments + ">" : "") + ")>::self;";
  }

  std::pair<std::string, int> line_of(Place place) const {
    return {std::string(lines_[place].first), lines_[place].second};
  }

  // The line after this one: `# 12 "file.cu" 2`.
  static void follow(std::string_view marker, std::pair<std::string_view, int>& line) {
    const std::size_t digits = marker.find_first_not_of("# \t");
    const std::size_t quote = marker.find('"');
    int number = 0;
    if (digits == std::string_view::npos || quote == std::string_view::npos ||
        std::from_chars(marker.data() + digits, marker.data() + marker.size(), number).ec != std::errc())
      return;
    line = {marker.substr(quote + 1, marker.rfind('"') - quote - 1), number - 1};  // its end comes with what follows
  }

  // --- From the beginning to the end ---

  void walk() {
    Place statement = 0;
    for (Place i = 0; i < size(); ++i) {
      const std::string_view text = at(i);
      if (edits_[i].replaced) continue;
      if (kind(i) == Kind::punctuation) {
        if (text == "{") {
          const bool within = in_function();
          scopes_.push_back(scope(statement, i));
          scopes_.back().is_template = at(statement) == "template";
          if (scopes_.back().kind == Scope::function && !within) {
            const bool kernel = has(statement, i, "__global__"), device = has(statement, i, "__device__");
            note_function(statement, i, kernel || device);
            functions_.push_back({i, {}, !kernel && (!device || has(statement, i, "__host__")), kernel || device});
            if (!kernel && !of_the_engine_[i]) note_guarded(statement, i);
          }
          if (!in_member()) statement = i + 1;
        } else if (text == "}") {
          const bool member = in_member();
          if (!scopes_.empty()) scopes_.pop_back();
          if (!member) statement = i + 1;
        } else if ((text == ";" && !in_member()) ||
                   (text == ":" && i > 0 && (at(i - 1) == "public" || at(i - 1) == "private"))) {
          statement = i + 1;
        } else if (text == "<" && at(i + 1) == "<" && at(i + 2) == "<" && i > 0 && at(i - 1) != "operator") {
          launch(i);
        } else if (text == "(" && i > 0 && (is_an_integer(at(i + 1)) || at(i + 1) == "std" || at(i + 2) == ")")) {
          cast_in_front(i);
        } else if (text == "[") {
          note_lambda(i);
          note_extent(i);
        }
        continue;
      }
      if (kind(i) != Kind::word) continue;
      if (is_cuda_keyword(text))
        keyword(i);
      else if (text == "__cluster_dims__")
        cluster_dims(i);
      else if (text == "__launch_bounds__")
        launch_bounds(i);
      else if (text == "__maxnreg__" || text == "__block_size__")
        remove(i, at(i + 1) == "(" ? past(i + 1) : i + 1);
      else if (text == "__align__" || text == "__builtin_align__")
        align(i);
      else if (text == "asm" || text == "__asm__" || text == "__asm")
        assembly(i);
      else if (text == "cudaLaunchKernel" || text == "cudaLaunchCooperativeKernel")
        keep_type_of_kernel(i), discard(i);
      else if ((text == "new" || text == "delete" || text == "malloc" || text == "free") &&
               in_device_code(statement, i))
        allocate(i);
      else if (text == "printf" && at(i + 1) == "(" && in_device_code(statement, i))
        print(i);
      else if (text.starts_with("cuda") && at(i + 1) == "(")
        discard(i);
      else if (text == "dynamic_cast" && at(i + 1) == "<")
        ask_for_type(i);
      else if (at(i + 1) == "<" ? text == "static_cast" : at(i + 1) == "(" && is_an_integer(text))
        cast(i);
      else if (text == "main" && at(i + 1) == "(" && scopes_.empty() && i > 0 && is_word(i - 1))
        has_main_ = true;
      else if (text == "threadIdx" || text == "blockIdx" || text == "blockDim" || text == "gridDim")
        note_change(i);
      note_call(i);
      note_mention(i);
    }
  }

  // `threadIdx.x += 32`, which nobody may do.
  void note_change(Place i) {
    if (!in_function() || !scopes_.back().device || at(i + 1) != "." || at(i - 1) == "." || at(i - 1) == "->") return;
    const std::string_view op = at(i + 3);
    const bool assigns = op == "=" && at(i + 4) != "=";
    const bool combined = (op == "+" || op == "-" || op == "*" || op == "/" || op == "%") && at(i + 4) == "=";
    if (assigns || combined || ((op == "+" || op == "-") && at(i + 4) == op && (at(i + 5) == ";" || at(i + 5) == ")")))
      wrong(i, "device code changes " + std::string(at(i)) + "." + std::string(at(i + 2)) + ", which it can only read");
  }

  // --- Casts to integers, which a GPU does its own way where the number does not fit ---

  // A type's name, or a part of it.
  static bool is_an_integer(std::string_view word) {
    static const std::set<std::string_view> names = {"int",       "unsigned", "signed",   "long",     "short",
                                                     "char",      "size_t",   "uchar",    "uint",     "ushort",
                                                     "ulong",     "int8_t",   "int16_t",  "int32_t",  "int64_t",
                                                     "ptrdiff_t", "uint8_t",  "uint16_t", "uint32_t", "uint64_t"};
    return names.contains(word);
  }
  bool is_an_integer(Place from, Place to) {
    if (to == from + 1 && is_type_parameter(at(from))) return true;  // it may be one
    if (from + 2 < to && at(from) == "std" && at(from + 1) == "::") from += 2;
    for (Place i = from; i < to; ++i)
      if (!is_an_integer(at(i))) return false;
    return from < to;
  }
  bool is_a_number(Place from, Place to) {
    return to == from + 1 && (at(from) == "float" || at(from) == "double" || at(from) == "half")
               ? true
               : is_an_integer(from, to);
  }
  // Of the function around: T of `template <class T>`.
  bool is_type_parameter(std::string_view name) {
    if (functions_.empty()) return false;
    if (parameters_of_ != functions_.back().open) {
      parameters_of_ = functions_.back().open;
      type_parameters_ = declaration(statement_begin(parameters_of_)).template_parameters;
    }
    return std::any_of(type_parameters_.begin(), type_parameters_.end(), [&](const std::string& each) {
      return each == "class " + std::string(name) || each == "typename " + std::string(name);
    });
  }
  bool may_cast(Place i) const { return in_function() && scopes_.back().device && !of_the_engine_[i]; }

  // static_cast<int>(x), int(x)
  void cast(Place i) {
    if (!may_cast(i)) return;
    if (at(i + 1) == "<") {
      const Place close = close_of_angle(i + 1);
      if (close == nowhere || at(close + 1) != "(" || partner_[close + 1] == nowhere) return;
      if (is_an_integer(i + 2, close)) replace(i, "::simt::to_integer");
      return;
    }
    const Place begin = at(i - 1) == "::" && at(i - 2) == "std" ? i - 2 : i, from = i + 2, to = past(i + 1) - 1;
    static const std::set<std::string_view> before = {"=", "(", "[", "{", "return", ",", "+", "-", "*",  "/", "%",
                                                      "?", ":", "&", "|", "^",      "!", "~", "<", "<=", ">="};
    if (from >= to || !before.contains(at(begin - 1)) || split(from, to).size() != 1) return;
    if (at(from) == "*" || at(from) == "&" || at(from) == "(" ? !is_word(from + 1) : is_a_number(from, from + 1))
      return;
    if (at(begin - 1) == "<" && close_of_angle(begin - 1) != nowhere) return;
    replace(begin, "::simt::to_integer<" + words(begin, i + 1) + ">");
    remove(begin + 1, i + 1);
  }

  // dynamic_cast in host code
  void ask_for_type(Place i) {
    const Place close = close_of_angle(i + 1);
    if (!in_function() || scopes_.back().device || of_the_engine_[i] || close == nowhere ||
        partner_[close + 1] == nowhere)
      return;
    edits_[close + 1].after += "::simt::asked_for_type(";
    edits_[partner_[close + 1]].before += ")";
  }

  // (int)x
  void cast_in_front(Place open) {
    const Place close = partner_[open];
    if (!may_cast(open) || close == nowhere || !is_an_integer(open + 1, close)) return;
    const std::string_view before = at(open - 1);
    const bool behind_a_cast =
        before == ")" && partner_[open - 1] != nowhere && is_a_number(partner_[open - 1] + 1, open - 1);
    if ((is_word(open - 1) && !is_statement_keyword(before)) || before == "]" || before == ">" ||
        (before == ")" && !behind_a_cast) || at(open - 2) == "operator")
      return;
    const Place last = end_of_operand(close + 1);
    if (last == nowhere) return;
    const std::string type = words(open + 1, close);
    remove(open, close + 1);
    edits_[open].text = "::simt::to_integer<" + type + ">(";
    edits_[last].after += ")";
  }

  // One of the file's own.
  bool is_a_type(std::string_view name) {
    if (types_.empty()) {
      types_.insert("");
      for (Place i = 1; i < size(); ++i) {
        const std::string_view before = at(i - 1);
        if (before == "typename" || before == "class" || before == "struct" || before == "using" ||
            (at(i + 1) == ";" && is_word(i) && has(statement_begin(i), i, "typedef")))
          types_.insert(at(i));
      }
    }
    return types_.contains(name);
  }

  // The last token of what a cast in front of i is of; nowhere if that cannot be known for sure.
  Place end_of_operand(Place i) {
    static const std::set<std::string_view> prefixes = {"-", "+", "!", "~", "*", "&"};
    for (;;) {  // what stands in front
      if (prefixes.contains(at(i))) {
        ++i;
      } else if (at(i) == "(" && partner_[i] != nowhere) {
        const Place next = past(i);
        const bool operand = is_word(next) || kind(next) == Kind::number;
        const bool number = is_a_number(i + 1, next - 1);
        if (!operand && !number && next == i + 3 && is_a_type(at(i + 1))) return nowhere;
        if (!operand && !number) break;
        if (!operand && at(next) != "(" && !prefixes.contains(at(next))) return nowhere;
        i = next;
      } else {
        break;
      }
    }
    if (at(i) == "::") ++i;
    static const std::set<std::string_view> others = {"new",   "delete",   "sizeof",  "alignof",
                                                      "throw", "operator", "template"};
    if (at(i) == "(") {
      if (partner_[i] == nowhere) return nowhere;
      i = partner_[i];
    } else if (kind(i) != Kind::number && kind(i) != Kind::character && (!is_word(i) || others.contains(at(i)))) {
      return nowhere;
    }
    for (;;) {  // what stands behind
      const std::string_view next = at(i + 1);
      if (next == "(" || next == "[") {
        if (partner_[i + 1] == nowhere) return nowhere;
        i = partner_[i + 1];
      } else if (next == "." || next == "->" || next == "::") {
        if (!is_word(i + 2) || others.contains(at(i + 2))) return nowhere;
        i += 2;
      } else if (next == "<" && is_word(i) && close_of_angle(i + 1) != nowhere &&
                 (at(close_of_angle(i + 1) + 1) == "(" || at(close_of_angle(i + 1) + 1) == "::")) {
        i = close_of_angle(i + 1);  // max<float>(..)
      } else if (next == "{" ||
                 ((next == "+" || next == "-") && at(i + 2) == next && tokens_[code_[i + 2]].space.empty())) {
        return nowhere;
      } else {
        return i;
      }
    }
  }

  bool in_member() const { return !scopes_.empty() && scopes_.back().kind == Scope::member; }

  // In a function of the device, or in what its classes' members begin with: after a constructor's colon, or after the
  // = of the member itself, which constructors of both sides share.
  bool in_device_code(Place statement, Place i) const {
    const bool within = !scopes_.empty() && scopes_.back().device;
    if (in_function() || (within && scopes_.back().kind != Scope::type)) return within;
    const Declaration d = declaration(statement);
    if (!d.is_function) return within && has(statement, i, "=");
    return has(d, "__device__") && d.body != nowhere && i >= past(d.parameters) && i < d.body;
  }

  // Memory that a kernel allocates is its own heap's, and not the host's.
  void allocate(Place i) {
    const std::string_view before = i > 0 ? at(i - 1) : std::string_view(), after = at(i + 1);
    if (before == "operator" || before == "." || before == "->") return;
    if (at(i) == "new") {
      if (after != "(" && (before == "::" || !news_its_own_way(i)))
        edits_[i].after += " (::simt::kernel_new)";  // else it says where
    } else if (at(i) == "delete") {
      if (before == "=") return;
      const bool array = after == "[" && at(i + 2) == "]";
      if (array) remove(i + 1, i + 3);
      replace(i, array ? "::simt::kernel_delete_array %" : "::simt::kernel_delete %");
    } else if (after == "(" && (before == "::" || !is_word(i - 1) || is_statement_keyword(before))) {
      Place begin = i;
      if (before == "::") {
        const std::string_view of = at(i - 2);
        const bool qualified = (is_word(i - 2) && !is_statement_keyword(of)) || of == ">";
        if (qualified && of != "std") return;  // pool::malloc()
        begin = !qualified ? i - 1 : at(i - 3) == "::" ? i - 3 : i - 2;
      } else if (means_own(i)) {
        return;
      }
      remove(begin, i);
      replace(i, "::simt::kernel_" + std::string(at(i)));
    }
  }

  // A malloc(), free() or operator new of a class's or a namespace's own.
  struct Own {
    std::string function;   // "free", "new", "new[]"
    std::string_view name;  // of the class or the namespace
    Place open;             // its brace
  };

  void find_own_allocators() {
    std::vector<Place> around;  // braces
    for (Place i = 0; i < size(); ++i) {
      const std::string_view text = at(i);
      if (text == "{") {
        around.push_back(i);
        if (own_.empty()) continue;
        const std::string_view name = name_before(i);
        for (std::size_t n = own_.size(); !name.empty() && n-- > 0;)  // a class made from it; the namespace's next part
          if (has(statement_begin(i), i, own_[n].name)) own_.push_back({own_[n].function, name, i});
      } else if (text == "}") {
        if (!around.empty()) around.pop_back();
      } else if (!around.empty() && text == "operator" && at(i + 1) == "new") {
        own_.push_back({at(i + 2) == "[" ? "new[]" : "new", name_before(around.back()), around.back()});
      } else if (!around.empty() && (text == "malloc" || text == "free") && at(i + 1) == "(" &&
                 at(statement_begin(i) - 1) != "(" && statement_begin(i) != i && !is_statement_keyword(at(i - 1))) {
        if (const Declaration d = declaration(i); d.is_function && d.parameters == i + 1)
          own_.push_back({std::string(text), name_before(around.back()), around.back()});
      }
    }
  }

  // Of the class or the namespace that begins at the brace; empty for all else.
  std::string_view name_before(Place open) const {
    std::string_view name;
    bool named = false;
    for (Place i = statement_begin(open); i < open && at(i) != ":"; ++i) {
      const std::string_view text = at(i);
      const Place angle = text == "<" ? close_of_angle(i) : nowhere;
      if (angle != nowhere && angle < open) {
        i = angle;
      } else if (takes_parentheses(text) && at(i + 1) == "(") {
        i = past(i + 1) - 1;
      } else if (text == "(" || text == "=") {
        return {};
      } else if (named && is_word(i) && text != "final") {
        name = text;
      }
      named = named || text == "class" || text == "struct" || text == "union" || text == "namespace";
    }
    return name;
  }

  // Whether the malloc or free at i is one of those that the class or the namespace around it has.
  bool means_own(Place i) const {
    for (const Own& own : own_) {
      if (own.function != at(i)) continue;
      if (own.open < i && i < past(own.open)) return true;
      if (own.name.empty() || functions_.empty() || !in_function()) continue;
      const Declaration d = declaration(statement_begin(functions_.back().open));  // of a member, outside its class?
      if (d.is_function && has(expression_begin(d.parameters - 1), d.parameters - 1, own.name)) return true;
    }
    return false;
  }

  // Whether the class that this `new` makes one of has an operator for it.
  bool news_its_own_way(Place i) const {
    std::string_view name;
    Place k = i + 1;
    while (is_word(k) || at(k) == "::" || at(k) == "<") {
      if (is_word(k)) name = at(k);
      const Place angle = at(k) == "<" ? close_of_angle(k) : k;
      if (angle == nowhere) break;
      k = angle + 1;
    }
    const char* const function = at(k) == "[" ? "new[]" : "new";
    return at(k) != "*" && std::any_of(own_.begin(), own_.end(),
                                       [&](const Own& own) { return own.name == name && own.function == function; });
  }

  // Parameters that promise that nobody else writes what they point to.
  void note_restricted(const Declaration& d) {
    if (d.body == nowhere) return;
    std::string all;
    int written = 0, restricted = 0;
    for (const auto& [from, to] : split(d.parameters + 1, past(d.parameters) - 1)) {
      if (!is_word(to - 1) || (at(to - 2) != "__restrict__" && at(to - 2) != "__restrict")) continue;
      const bool constant = has(from, to, "const");
      ++restricted;
      written += !constant;
      all += ", {\"" + std::string(at(to - 1)) + "\", " + std::string(at(to - 1)) + (constant ? ", false}" : ", true}");
    }
    if (restricted > 1 && written > 0)
      edits_[d.body].after += " if (::simt::is_first_thread()) ::simt::restricted({" + all.substr(2) + "});";
  }

  // --- What only the host has ---

  // Whether the lines behind the directive are of a header of the engine's.
  static bool names_engine(std::string_view directive, bool before) {
    const std::size_t quote = directive.find('"'), last = directive.rfind('"');
    if (quote == last || directive.find_first_of("0123456789") != directive.find_first_not_of("# \t")) return before;
    const std::string_view file = directive.substr(quote, last - quote);
    for (const char* room : {"cuda", "engine", "front", "hopper", "include", "libraries", "ptx"})
      if (file.find("/simt/" + std::string(room) + "/") != std::string_view::npos) return true;
    return false;
  }

  void note_function(Place statement, Place open, bool device) {
    const Declaration d = declaration(statement);
    if (!d.is_function || d.is_operator || d.body != open) return;
    for (const Scope& scope : scopes_)
      if (&scope != &scopes_.back() && scope.kind != Scope::names) return;  // a member
    const Place before = at(d.parameters - 1) == ">" ? d.parameters : d.parameters - 2;
    if (before < d.parameters && at(before) == "::") return;
    if (has(d.begin, d.parameters, "constexpr") || has(d.begin, d.parameters, "consteval")) {
      if (!of_the_engine_[open]) (device ? of_the_device_ : constant_of_the_host_).insert(d.name);
      return;
    }
    if (device) return;
    (of_the_engine_[open] ? of_the_device_ : of_the_host_).insert(d.name);
  }

  // A call by a function that is the device's alone: nvcc lets those of both sides call what the host has.
  void note_call(Place i) {
    if (i < 2 || !in_function() || !scopes_.back().device) return;
    if ((at(i) == "throw" && at(i + 1) != "(") || (at(i) == "try" && at(i + 1) == "{")) exceptions_.push_back(i);
    if (scopes_.back().host) {
      if (at(i + 1) == "(") called_by_both_.insert(at(i));
      return;
    }
    const bool streams = at(i) == "cout" || at(i) == "cerr";
    if (at(i + 1) != "(" && (!streams || at(i + 1) != "<" || at(i + 2) != "<")) return;
    const std::string_view before = at(i - 1);
    if (before == "." || before == "->" || (is_word(i - 1) && !is_statement_keyword(before))) return;
    if (before == "::" && at(i - 2) != "std") return;
    if (before == "(" && (at(i - 2) == "decltype" || at(i - 2) == "sizeof" || at(i - 2) == "noexcept")) return;
    calls_.push_back({i, functions_.empty() ? 0 : functions_.back().open});
  }

  // In the body and before it, the name may be another thing's: a parameter's, a lambda's.
  bool is_another_thing(Place call, Place body) const {
    for (Place k = statement_begin(body); k < call; ++k)
      if (at(k) == at(call) && at(k + 1) != "(") return true;
    return false;
  }

  bool in_system_headers(std::string_view name) const {
    for (const Token& token : tokens_) {
      if (token.kind != Kind::foreign) continue;
      for (std::size_t at = token.text.find(name); at != std::string_view::npos; at = token.text.find(name, at + 1)) {
        const auto part_of_word = [](char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)); };
        const std::size_t end = at + name.size();
        if ((at == 0 || !part_of_word(token.text[at - 1])) && end < token.text.size() && token.text[end] == '(')
          return true;
      }
    }
    return false;
  }

  void find_calls_of_the_host() {
    static const std::set<std::string_view> of_the_library = {"rand",
                                                              "srand",
                                                              "time",
                                                              "fprintf",
                                                              "sprintf",
                                                              "puts",
                                                              "fopen",
                                                              "fclose",
                                                              "scanf",
                                                              "fscanf",
                                                              "getchar",
                                                              "exit",
                                                              "calloc",
                                                              "realloc",
                                                              "fputs",
                                                              "putchar",
                                                              "atoi",
                                                              "atof",
                                                              "cudaMemcpy",
                                                              "cudaMemset",
                                                              "cudaMemcpyToSymbol",
                                                              "cudaMemcpyFromSymbol",
                                                              "cudaMallocManaged",
                                                              "cudaMallocHost",
                                                              "cudaHostAlloc",
                                                              "cudaStreamSynchronize",
                                                              "cudaEventSynchronize"};
    static const std::set<std::string_view> constant_on_the_host = {"max", "min", "clamp", "swap"};
    for (const Place i : exceptions_) wrong(i, std::string(at(i)) + ": device code has no exceptions");
    for (const auto& [call, body] : calls_) {
      const std::string_view name = at(call);
      const bool of_std = at(call - 1) == "::";
      if (known_.contains(std::string(name)) && !of_std && !is_another_thing(call, body) && is_a_kernel_alone(name))
        wrong(call, "device code calls the kernel " + std::string(name) +
                        "() as a function: a launch says <<<blocks, threads>>>, a function that both may call has "
                        "__device__");
      if (at(call + 1) != "(" && (of_std || !means_a_variable(name)))
        wrong(call, "device code uses " + std::string(name) + ", which is the host's: kernels print with printf()");
      if (of_std && !relaxed_ && constant_on_the_host.contains(name))
        wrong(call,
              "device code calls std::" + std::string(name) + "(), which is the host's" +
                  (name == "swap" ? "" : ": nvcc takes it with --expt-relaxed-constexpr, which may be said here, too"));
      if (of_the_device_.contains(name) || is_another_thing(call, body)) continue;
      if (!relaxed_ && at(call - 1) != "::" && constant_of_the_host_.contains(name) && !of_the_host_.contains(name))
        wrong(call, "device code calls " + std::string(name) +
                        "(), which is the host's, though constexpr: it needs __device__, or --expt-relaxed-constexpr, "
                        "which may be said here, too");
      const bool own = of_the_host_.contains(name);
      if (own ? at(call - 1) == "::" || in_system_headers(name) : !of_the_library.contains(name)) continue;
      const auto [file, line] = line_of(call);
      mistakes_.push_back({file, line,
                           "device code calls " + std::string(name) + "(), which is the host's" +
                               (own ? ": it needs __device__" : "")});
    }
  }

  // Whether no other function has the name.
  bool is_a_kernel_alone(std::string_view name) const {
    return !any_outside_functions(name, [&](Place i) {
      return at(i + 1) == "(" && declares_function(i) && !has(statement_begin(i), i, "__global__");
    });
  }

  static void put_in_order(std::vector<Wrong>& mistakes) {
    const auto key = [](const Wrong& each) { return std::tie(each.file, each.line, each.what); };
    std::sort(mistakes.begin(), mistakes.end(), [&](const Wrong& a, const Wrong& b) { return key(a) < key(b); });
    const auto same = [&](const Wrong& a, const Wrong& b) { return key(a) == key(b); };
    mistakes.erase(std::unique(mistakes.begin(), mistakes.end(), same), mistakes.end());
  }

  // --- What only the device has ---

  struct OfTheDevice {
    std::set<std::string> signatures;  // their parameters' types
    bool is_template = false;
    bool of_both = false;  // sides
  };
  struct Mention {
    Place name, body;
    bool on_device, in_template;
    bool on_either = false;  // side
  };

  // In host code, a kernel's or a device function's name; in device code, that of a constant array of the host's.
  void note_mention(Place i) {
    const std::string_view before = i > 0 ? at(i - 1) : std::string_view();
    if (of_the_engine_[i] || before == "." || before == "->") return;
    const Place body = functions_.empty() ? 0 : functions_.back().open;
    const auto value_or_name = [](const Scope& s) { return s.kind == Scope::names || s.kind == Scope::other; };
    if (std::all_of(scopes_.begin(), scopes_.end(), value_or_name)) return note_at_namespace_scope(i);
    if (!in_function()) return note_outside_functions(i);
    const Scope& in = scopes_.back();
    if (in.device
            ? host_arrays_.contains(at(i))
            : known_.contains(std::string(at(i))) || device_functions_.contains(at(i)) || is_the_devices_own(at(i)))
      mentions_.push_back({i, body, in.device, in_template()});
  }

  // What CUDA has for device code alone.
  static bool is_the_devices_own(std::string_view name) {
    static const std::set<std::string_view> names = {
        "threadIdx",      "blockIdx",    "blockDim",      "gridDim",          "atomicAdd",
        "atomicSub",      "atomicExch",  "atomicMin",     "atomicMax",        "atomicInc",
        "atomicDec",      "atomicCAS",   "atomicAnd",     "atomicOr",         "atomicXor",
        "__expf",         "__fdividef",  "__syncwarp",    "__shfl_down_sync", "__shfl_xor_sync",
        "__shfl_up_sync", "__shfl_sync", "__ballot_sync", "__threadfence",    "__syncthreads",
        "__ldg"};
    return names.contains(name);
  }

  bool is_the_engines_own(Place i) const { return of_the_engine_[i] && is_the_devices_own(at(i)); }

  // `const float weights[] = {..};` of the host, or `Function* chosen = square;`
  void note_at_namespace_scope(Place i) {
    const Place statement = whole_statement_begin(i);
    if (i == statement) return;
    if (has(statement, i, "(")) return note_outside_functions(i);
    for (const char* word : {"__device__", "__constant__", "__managed__", "__shared__", "extern", "using", "typedef"})
      if (has(statement, i, word)) return;
    const bool array = at(i + 1) == "[" && (is_word(i - 1) || at(i - 1) == "*" || at(i - 1) == ">");
    if (array && !has(statement, i, "=") && (has(statement, i, "const") || has(statement, i, "constexpr")))
      host_arrays_.insert(at(i));
    if (has(statement, i, "=") && device_functions_.contains(at(i)))
      mentions_.push_back({i, statement, false, at(statement) == "template"});
  }

  // A default argument, a member's initial value, also in a constructor's list: of whoever calls.
  void note_outside_functions(Place i) {
    if (!device_functions_.contains(at(i)) || at(past_name(i)) == "(") return;
    const Place statement = whole_statement_begin(i);
    const bool of_the_device = has(statement, i, "__device__") && !has(statement, i, "__host__");
    if (!of_the_device && !has(statement, i, "typedef") && !has(statement, i, "extern"))
      mentions_.push_back({i, statement, false, false, /*on_either=*/true});
  }

  // Also from within parentheses, and the braces of a value.
  Place whole_statement_begin(Place i) const {
    for (;;) {
      i = statement_begin(i);
      if (i > 1 && at(i) == "," && at(i - 1) == "}" && partner_[i - 1] != nowhere) {  // behind {"square", square}
        i = partner_[i - 1];
        continue;
      }
      if (i < 2 || (at(i - 1) != "(" && at(i - 1) != "{")) return i;
      const std::string_view before = at(i - 2);
      if (at(i - 1) == "{" && before != "=" && before != "," && before != "{" && before != "]") return i;
      --i;
    }
  }

  bool in_template() const {
    return std::any_of(scopes_.begin(), scopes_.end(), [](const Scope& scope) { return scope.is_template; });
  }

  // A function that host code may not call by this name, if it is not the host's too, and of which it has another
  // address than kernels.
  void note_device_function(const Declaration& d) {
    if (d.is_operator || has(d, "constexpr") || has(d, "friend") || of_the_engine_[d.parameters]) return;
    if (!scopes_.empty() && scopes_.back().kind != Scope::names) return;
    std::string types;
    for (const Parameter& parameter : parameters(d)) types += parameter.type + ",";
    OfTheDevice& function = device_functions_[d.name];
    function.signatures.insert(types);
    function.is_template = function.is_template || d.is_template;
    function.of_both = function.of_both || has(d, "__host__");
  }

  // Whether the name at i is what a declaration declares as a function: behind its type.
  bool declares_function(Place i) const {
    const Place begin = statement_begin(i);
    Place k = i;
    while (k > begin) {
      if (at(k - 1) == ">") {
        k = open_of_angle(k - 1);
        if (k == nowhere || k < begin) return false;
        continue;
      }
      --k;
      if (kind(k) == Kind::string) continue;  // extern "C"
      if (at(k) == ")" && partner_[k] != nowhere && partner_[k] > begin && takes_parentheses(at(partner_[k] - 1))) {
        k = partner_[k];
        continue;
      }
      if (is_word(k) ? is_statement_keyword(at(k)) || at(k) == "new" || at(k) == "throw" || at(k) == "delete"
                     : at(k) != "::" && at(k) != "*" && at(k) != "&" && at(k) != "~")
        return false;
    }
    return i > begin && at(i - 1) != "::";
  }

  // Those outside functions' bodies and parameters, at which the name stands.
  template <class Is>
  bool any_outside_functions(std::string_view name, const Is& is) const {
    std::size_t next = 0;  // function
    for (Place i = 1; i < size(); ++i) {
      for (; next < functions_.size() && functions_[next].open < i; ++next)
        i = std::max(i, past(functions_[next].open));
      if (at(i) == "(") i = past(i) - 1;
      if (at(i) == name && is(i)) return true;
    }
    return false;
  }

  // Whether the name is also that of a function of the host's, or of a member; of a variable, or a type.
  bool means_another_function(std::string_view name) const {
    return any_outside_functions(name, [&](Place i) {
      if (at(i + 1) != "(" || !declares_function(i) || is_the_engines_own(i)) return false;
      const Place begin = statement_begin(i);
      return has(begin, i, "__host__") || (!has(begin, i, "__device__") && !has(begin, i, "__global__"));
    });
  }
  bool is_behind_a_type(Place i) const {  // int* name
    const std::string_view before = at(i - 1);
    return (before == "*" || before == "&") &&
           ((is_word(i - 2) && !is_statement_keyword(at(i - 2))) || at(i - 2) == ">" || at(i - 2) == before);
  }
  bool means_a_variable(std::string_view name) const {
    return any_outside_functions(name, [&](Place i) {
      if (at(i + 1) == "(" || at(i + 1) == "<" || is_the_engines_own(i)) return false;
      const std::string_view before = at(i - 1);
      return (is_word(i - 1) && !is_statement_keyword(before)) || before == ">" || in_enumeration(i) ||
             is_behind_a_type(i) || (before == "," && in_a_list_of_variables(i));
    });
  }
  // Whether the brace is that of a value: `= {..}`, `table[] {{..}, ..}`, `vector<T>{..}`.
  bool begins_values(Place open) const {
    while (open > 0 && at(open - 1) == "{") --open;
    if (open == 0) return false;
    const std::string_view before = at(open - 1);
    return before == "=" || before == "," || before == "(" || before == "]" || before == ">" || before == "return" ||
           (is_word(open - 1) && !is_statement_keyword(before));
  }
  // `int a, name;`
  bool in_a_list_of_variables(Place i) const {
    const Place name = i;
    while (i-- > 0) {
      const std::string_view text = at(i);
      if (text == "<")  // of a template's arguments?
        if (const Place close = close_of_angle(i); close != nowhere && close > name) return false;
      if (text == "(" || text == "[") return at(i - 1) == "for";
      if (text == "{" && begins_values(i)) return false;
      if (text == "{" || text == ";" || text == "}") return true;
      if ((text == ")" || text == "]") && partner_[i] != nowhere) i = partner_[i];
    }
    return true;
  }

  // Behind a name, its template arguments too.
  Place past_name(Place i) const {
    const Place angle = at(i + 1) == "<" ? close_of_angle(i + 1) : nowhere;
    return angle == nowhere ? i + 1 : angle + 1;
  }

  // Whether the name stands where a value is used: and not in a template's arguments, or in what is never computed.
  bool is_a_value(Place i) const {
    static const std::set<std::string_view> enders = {",", ")", ";", "}", ":", "?", "&", "|"};
    const Place past = past_name(i);
    const std::string_view after = at(past);
    if (!enders.contains(after) && !((after == "=" || after == "!") && at(past + 1) == "=")) return false;
    Place before = i - 1;
    while (at(before) == "::") before -= is_word(before - 1) ? 2 : 1;
    if (at(before) == "&") --before;
    static const std::set<std::string_view> openers = {"(", ",", "=", "{", "?", ":", ")", "return"};
    if (!openers.contains(at(before)) || (at(before) == "," && in_a_list_of_variables(i))) return false;
    const Place statement = whole_statement_begin(i);
    for (const char* word : {"constexpr", "static_assert", "decltype", "sizeof", "noexcept", "typeid", "using"})
      if (has(statement, i, word)) return false;
    int depth = 0;  // of angle brackets
    for (Place k = i; k-- > statement;) {
      if (at(k) == ">") ++depth;
      if (at(k) == "<" && --depth < 0 && at(k - 1) != "<") return false;
      if (at(k) == "(" || at(k) == "{") break;
      if ((at(k) == ")" || at(k) == "]" || at(k) == "}") && partner_[k] != nowhere) k = partner_[k];
    }
    return true;
  }

  // What the two sides have of each other is said if it is wrong, where the text is that of the side; and host code
  // gets other addresses of device functions.
  void find_mentions(bool says_host, bool says_device) {
    std::map<std::string_view, std::pair<bool, bool>> other;  // is the name another function's, a variable's?
    for (const Mention& each : mentions_) {
      const std::string_view name = at(each.name);
      if (each.on_device) {
        if (says_device) find_array_of_the_host(each);
        continue;
      }
      const auto [found, is_new] = other.try_emplace(name);
      if (is_new) found->second = {in_system_headers(name) || means_another_function(name), means_a_variable(name)};
      const auto [another_function, a_variable] = found->second;
      const auto function = device_functions_.find(name);
      const bool of_both = function != device_functions_.end() && function->second.of_both;
      if ((another_function && !of_both) || is_declared_between(statement_begin(each.body), each.name, name)) continue;
      const Place after = past_name(each.name);
      if (is_the_devices_own(name)) {
        if (says_host && !a_variable && !another_function && (at(after) == "(" || at(after) == "."))
          own_of_the_device(each);
      } else if (at(after) == "(") {
        if (says_host && !of_both) call_by_the_host(each);
      } else if (function != device_functions_.end() && !a_variable && is_a_value(each.name)) {
        if (function->second.signatures.size() > 1 || (function->second.is_template && after == each.name + 1))
          continue;
        Place begin = each.name;
        while (begin > 1 && at(begin - 1) == "::") begin -= is_word(begin - 2) ? 2 : 1;
        edits_[begin].before += each.on_either
                                    ? of_both ? "::simt::on_this_side<true>(" : "::simt::on_this_side<false>("
                                : of_both ? "::simt::of_both_sides("
                                          : "::simt::in_host_code(";
        edits_[after - 1].after += ")";
      }
    }
  }

  void call_by_the_host(const Mention& each) {
    const bool launch = at(each.name + 1) == "<" && at(each.name + 2) == "<";
    if (launch || each.in_template || unevaluated(each.name) || declares_function(each.name)) return;
    const std::string name(at(each.name));
    wrong(each.name,
          known_.contains(name)
              ? "host code calls the kernel " + name + "() as a function: a launch says <<<blocks, threads>>>"
              : "host code calls " + name + "(), which is the device's: it needs __host__ __device__");
  }

  // nvcc looks at functions that are compiled.
  void own_of_the_device(const Mention& each) {
    if (each.in_template || unevaluated(each.name) || declares_function(each.name)) return;
    const Declaration d = declaration(statement_begin(each.body));
    if ((has(d, "inline") || has(d, "static")) && mentions_of(d.name) < 2) return;
    wrong(each.name, "host code uses " + std::string(at(each.name)) + ", which only device code has");
  }

  std::size_t mentions_of(std::string_view name) const {
    std::size_t mentions = 0;
    for (Place i = 0; i < size(); ++i) mentions += at(i) == name;
    return mentions;
  }

  // A function of one side, or a lambda of the host's, that may be called by its address.
  struct Guarded {
    std::string_view name;
    Place body;
    bool on_host;
  };

  void note_guarded(Place statement, Place open) {
    const Declaration d = declaration(statement);
    const bool device = has(statement, open, "__device__");
    if (!d.is_function || d.body != open || (device && has(statement, open, "__host__"))) return;
    if (has(d, "constexpr") || has(d, "consteval") || d.name == "main") return;
    const bool member = scopes_.size() > 1 && scopes_[scopes_.size() - 2].kind == Scope::type;
    if (!device && (member || d.is_operator)) note_own(d, member);
    if (d.is_operator || has(d.begin, d.parameters - 1, d.name)) return;  // P::P()
    if (!member || has(d, "static")) guarded_.push_back({d.name, open, !device});
  }

  Place name_of_operator(const Declaration& d) const {
    Place name = d.parameters - 1;
    while (at(name) != "operator") --name;
    return name;
  }

  // An operator or a member function of the host's, which nobody finds by its name. Not what the engine calls when it
  // copies and converts arguments: constructors that do so, destructors, conversions.
  void note_own(const Declaration& d, bool member) {
    const Place name = d.is_operator ? name_of_operator(d) : d.parameters - 1;
    if (d.is_operator) {
      if (is_word(name + 1) || at(name + 1) == "::" || (at(name + 1) == "=" && at(name + 2) == "(")) return;
    }
    static const std::set<std::string_view> specifiers = {"inline",   "static", "virtual", "explicit",
                                                          "__host__", "friend", "~",       "__forceinline__"};
    Place type = d.begin;
    while (at(type) == "template" && at(type + 1) == "<" && close_of_angle(type + 1) != nowhere)
      type = close_of_angle(type + 1) + 1;
    while (specifiers.contains(at(type))) ++type;
    if (has(d.begin, name, "::")) return;  // of a class that says elsewhere what it is for
    std::string said = d.is_operator ? words(name, d.parameters) : std::string(d.name);
    if (type == name) {
      if (at(name - 1) == "~" || has(d.parameters, past(d.parameters), d.name) || converts(d)) return;
      said += "::" + said;
    }
    if (member || !operators_of_the_device_.contains(said)) own_functions_.push_back({d.name, said, d.body});
  }

  // Whether a constructor may make a kernel's argument of another one, or its default argument, when the kernel has
  // begun: deduced() has it so.
  bool converts(const Declaration& d) const {
    const auto all = split(d.parameters + 1, past(d.parameters) - 1);
    const auto needed =
        std::count_if(all.begin(), all.end(), [&](const auto& each) { return !has(each.first, each.second, "="); });
    const bool of_one = !all.empty() && needed <= 1 && !has(d, "explicit");
    return std::any_of(known_.begin(), known_.end(), [&](const auto& each) {
      const Known& known = each.second;
      return known.default_arguments || (of_one && (known.template_parameters > 0 || known.parameter_types.size() > 1));
    });
  }

  // Those whose names stand somewhere as a value; and lambdas that capture nothing.
  void guard_functions() {
    std::set<std::string_view> names;
    for (const Guarded& each : guarded_) names.insert(each.name);
    std::set<std::string_view> taken;
    for (Place i = 1; i < size(); ++i)
      if (is_word(i) && names.contains(at(i)) && !taken.contains(at(i)) && is_a_value(i)) taken.insert(at(i));
    for (const auto& [name, body, on_host] : guarded_) {
      if (taken.contains(name))
        guard_function(std::string(name), body, on_host);
      else if (on_host && called_by_both_.contains(name) && !of_the_device_.contains(name))
        guard_own(std::string(name), body);
    }
    for (const Place body : lambdas_) guard_function("a lambda function", body, true);
    for (const auto& [name, said, body] : own_functions_)
      if (!taken.contains(name)) guard_own(said, body);
  }

  void guard_own(const std::string& said, Place body) {
    edits_[body].after += " if (::simt::in_kernel()) ::simt::own_function_in_kernel(\"" + said +
                          "\", __builtin_FILE(), __builtin_LINE());";
  }

  void guard_function(const std::string& name, Place body, bool on_host) {
    edits_[body].after += std::string(" if (!__builtin_is_constant_evaluated() && ") +
                          (on_host ? "::simt::in_kernel()) ::simt::host_function_in_kernel"
                                   : "!::simt::in_kernel()) ::simt::device_function_on_host") +
                          "(\"" + name + "\", __builtin_return_address(0));";
  }

  // `[](float x) { return x + 1; }` in host code.
  void note_lambda(Place i) {
    if (at(i + 1) != "]" || of_the_engine_[i] || (!scopes_.empty() && scopes_.back().device)) return;
    static const std::set<std::string_view> before = {"(", ",", "=", "{", "return", "+", "?", ":", "&", "|", ";", "}"};
    if (i == 0 || !before.contains(at(i - 1)) || (at(i + 2) != "(" && at(i + 2) != "{")) return;
    Place body = at(i + 2) == "(" ? past(i + 2) : i + 2;
    while (body < size() && at(body) != "{" && at(body) != ";" && at(body) != ")" && at(body) != ",") ++body;
    if (at(body) == "{" && !has(statement_begin(i), body, "constexpr") && !has(i, body, "__device__"))
      lambdas_.push_back(body);
  }

  // `float row[n];` in device code, where n is a parameter.
  void note_extent(Place open) {
    if (!in_function() || !scopes_.back().device || of_the_engine_[open] || partner_[open] == nowhere) return;
    Place name = open - 1;
    while (at(name) == "]" && partner_[name] != nowhere) name = partner_[name] - 1;
    static const std::set<std::string_view> no_types = {"return", "else", "case", "delete",
                                                        "throw",  "goto", "new",  "do"};
    if (name < 2 || !is_word(name) || !is_word(name - 1) || no_types.contains(at(name - 1)) || functions_.empty())
      return;
    const Declaration d = declaration(statement_begin(functions_.back().open));
    if (!d.is_function) return;
    std::set<std::string> names = {"warpSize", "blockDim", "gridDim", "threadIdx"};
    for (const Parameter& parameter : parameters(d)) names.insert(parameter.name);
    for (Place i = open + 1; i < partner_[open]; ++i)
      if (is_word(i) && names.contains(std::string(at(i))) && at(i - 1) != "." && at(i - 1) != "::" &&
          at(i + 1) != "(" && !has(open, partner_[open], "sizeof") && !has(open, partner_[open], "decltype"))
        return wrong(open, "an array of " + words(open + 1, partner_[open]) +
                               " elements in device code: their number has to be a constant");
  }

  bool unevaluated(Place i) const {
    return at(i - 1) == "(" && (at(i - 2) == "decltype" || at(i - 2) == "sizeof" || at(i - 2) == "noexcept");
  }

  void find_array_of_the_host(const Mention& each) {
    const std::string_view name = at(each.name);
    if (each.in_template || unevaluated(each.name) || at(each.name + 1) == "(" || at(each.name - 1) == "::") return;
    if (is_word(each.name - 1) && !is_statement_keyword(at(each.name - 1))) return;  // its own variable of that name
    const Declaration d = declaration(statement_begin(each.body));
    if (!d.is_function || has(d, "constexpr") || has(statement_begin(each.body), each.body, name) ||
        is_declared_between(each.body, each.name, name))
      return;
    for (Place i = 1; i < size(); ++i)
      if (at(i) == name && is_word(i - 1))
        for (const char* word : {"__device__", "__constant__", "__shared__", "__managed__"})
          if (has(statement_begin(i), i, word)) return;  // elsewhere it is the device's
    // nvcc looks at functions that are compiled: kernels, and what they call.
    if (!has(d, "__global__") && mentions_of(d.name) < 2) return;
    wrong(each.name,
          "device code uses " + std::string(name) + ", an array of the host's: it needs __constant__ or __device__");
  }

  bool is_declared_between(Place from, Place to, std::string_view name) const {
    for (Place i = from + 1; i < to; ++i)
      if (at(i) == name && at(i - 1) != "." && at(i - 1) != "->" &&
          ((is_word(i - 1) && !is_statement_keyword(at(i - 1))) || at(i - 1) == ">" || is_behind_a_type(i) ||
           (at(i - 1) == "," && in_a_list_of_variables(i))))
        return true;
    return false;
  }

  void wrong(Place place, std::string what) {
    const auto [file, line] = line_of(place);
    mistakes_.push_back({file, line, std::move(what)});
  }

  void cluster_dims(Place i) {
    const Declaration d = declaration(i);
    if (d.body != nowhere && at(i + 1) == "(")
      edits_[d.body].after += " ::simt::asks_for_cluster(" + words(i + 2, past(i + 1) - 1) + ");";
    remove(i, at(i + 1) == "(" ? past(i + 1) : i + 1);
  }

  void launch_bounds(Place i) {
    const Place end = at(i + 1) == "(" ? past(i + 1) : i + 1;
    const auto numbers = end > i + 2 ? split(i + 2, end - 1) : std::vector<std::pair<Place, Place>>();
    if (const Declaration d = declaration(i); d.body != nowhere && !numbers.empty())
      edits_[d.body].after += " ::simt::allows_threads(" + words(numbers[0].first, numbers[0].second) + ");";
    remove(i, end);
  }

  // Has the engine know that the kernel prints: what it prints is seen only if the host waits for it.
  void print(Place i) {
    const Place close = partner_[i + 1];
    if (close == nowhere || (i > 0 && (at(i - 1) == "." || at(i - 1) == "->"))) return;
    std::string& before = edits_[expression_begin(i)].before;
    before += "(::simt::prints(), ";
    edits_[close].after += ")";
    std::string format;
    Place end = i + 2;
    for (; kind(end) == Kind::string; ++end) {
      const std::size_t from = at(end).find('"') + 1;
      format += at(end).substr(from, at(end).rfind('"') - from);
    }
    if (at(end) != "," || !prints_text(format)) return;
    before += "[](auto... simt_arguments) { return ";
    replace(end, ", ::simt::printed(simt_arguments)...); }(");
  }

  // Whether the format has a %s.
  static bool prints_text(std::string_view format) {
    for (std::size_t at = format.find('%'); at != std::string_view::npos; at = format.find('%', at + 1)) {
      at = format.find_first_not_of("-+ #0123456789*.hljztL", at + 1);
      if (at == std::string_view::npos) return false;
      if (format[at] == 's') return true;
    }
    return false;
  }

  // A call of the runtime that is a statement: nobody looks at its error.
  void discard(Place i) {
    if (i == 0 || scopes_.empty() || !in_function() || scopes_.back().device) return;
    const std::string_view before = at(i - 1);
    const Place close = partner_[i + 1];
    if (close == nowhere || at(close + 1) != ";") return;
    if (before == ")") {
      const Place open = partner_[i - 1];
      if (open == nowhere || open == 0 || (at(open - 1) != "if" && at(open - 1) != "for" && at(open - 1) != "while"))
        return;
    } else if (before != ";" && before != "{" && before != "}" && before != "else" && before != "do") {
      return;
    }
    for (Place each = i; each-- > 0 && at(each) != "{" && at(each) != "}";) {
      if (at(each) == "(") return;  // the head of a for
      if (at(each) == ")" && partner_[each] != nowhere) each = partner_[each];
    }
    edits_[i].before += "::simt::discarding(), ";
    edits_[close].after += ", ::simt::discarded(\"" + std::string(at(i)) + "\")";
  }

  bool in_function() const {
    return std::any_of(scopes_.begin(), scopes_.end(), [](const Scope& s) { return s.kind == Scope::function; });
  }

  // What the brace at `open` begins, in the statement from `begin`.
  Scope scope(Place begin, Place open) const {
    const bool device = has(begin, open, "__device__") || has(begin, open, "__global__");
    const bool host = !device || has(begin, open, "__host__");
    if (in_function()) return {Scope::block, device || scopes_.back().device, "", device ? host : scopes_.back().host};
    if (at(begin) == "inline" && at(begin + 1) == "namespace") ++begin;
    if (at(begin) == "namespace") return {Scope::names, false, words(begin + 1, open)};
    if (at(begin) == "extern" && kind(begin + 1) == Kind::string && begin + 2 == open) return {Scope::names, false, ""};
    const Scope value{Scope::other, !scopes_.empty() && scopes_.back().device, ""};  // of a member of the class around
    bool is_type = false, parameters = false, members = false;
    for (Place i = begin; i < open;) {
      const std::string_view text = at(i);
      if (text == "template" && at(i + 1) == "<") {
        if (const Place close = close_of_angle(i + 1); close != nowhere && close < open) {
          i = close + 1;
          continue;
        }
      }
      if ((text == "=" && !parameters) || text == "enum") return value;
      if (text == "class" || text == "struct" || text == "union") is_type = true;
      if (text == "operator") parameters = true;
      if (text == "(" && !takes_parentheses(at(i - 1))) parameters = true;
      if (text == ":" && parameters) members = true;
      i = text == "(" || text == "[" ? past(i) : i + 1;
    }
    if (parameters && members && declaration(begin).body != open) return {Scope::member, device, "", host};
    if (parameters) return {Scope::function, device, "", host};
    if (is_type) return {Scope::type, has(open, past(open), "__device__"), ""};
    return value;
  }

  void keyword(Place i) {
    const std::string_view text = at(i);
    if (i > 2 && at(i - 1) == "(" && at(i - 2) == "(") return;  // __attribute__((__noinline__))
    if (text == "__shared__") return shared(i);
    replace(i, "");
    if (text == "__grid_constant__" || text == "__host__" || (i > 0 && at(i - 1) == "]")) return;
    if (text == "__noinline__") return replace(i, "__attribute__((noinline))");
    const Declaration d = declaration(i);
    if (text == "__forceinline__") {
      const bool said = has(d, "inline") || has(d, "__inline__") || has(d, "__inline");
      return replace(i, said ? "__attribute__((always_inline))" : "inline __attribute__((always_inline))");
    }
    if (d.is_function) of_the_device_.insert(d.name);
    if (d.is_operator) operators_of_the_device_.insert(words(name_of_operator(d), d.parameters));
    if (d.is_function && text == "__device__") note_device_function(d);
    if (text == "__global__") {
      replace(i, "__attribute__((noinline, noclone))");
      if (d.is_function && !scopes_.empty() && scopes_.back().kind == Scope::type && !has(d, "friend"))
        wrong(i, "the kernel " + std::string(d.name) + "() is a member of a class: nvcc takes kernels outside classes");
      if (d.is_function) note_kernel(d, i), note_restricted(d);
      return;
    }
    if (d.is_function) {
      const bool inlined = inlining_ && d.body != nowhere && !has(d, "__noinline__") && !calls_itself(d);
      if (text == "__device__" && inlined) replace(i, "__attribute__((always_inline))");
      return;
    }
    if (in_function()) {  // no object can stand beside it: the engine finds it by its symbol's name
      const bool automatic = !has(d, "static") && !has(d, "extern") && at(d.end) == ";" && !d.variables.empty();
      if (automatic && scopes_.back().device && text != "__managed__" && i == d.begin)
        wrong(i, "a " + std::string(text) + " variable within a function has to be static");
      if (has(d, "static") && text != "__managed__")
        replace(i, "__attribute__((abi_tag(\"" + std::string(text.substr(2, text.size() - 4)) + "\")))");
      return;
    }
    if (!has(d, "__managed__")) device_variables_.insert(d.variables.begin(), d.variables.end());
    if (at(d.end) != ";" || !said_.insert(d.begin).second) return;
    if (!scopes_.empty() &&
        scopes_.back().kind != Scope::names) {  // a member: its name tells, where it is defined here
      if (has(d, "inline") && text != "__managed__")
        replace(i, "__attribute__((abi_tag(\"" + std::string(text.substr(2, text.size() - 4)) + "\")))");
      return;
    }
    if (has(d, "extern") || has(d, "constexpr")) return;
    find_call_in_value(d);
    // g++ lays out those that other files may use apart from the others, and those with an initial value.
    const bool others = !d.is_template && !has(d, "static") &&
                        std::none_of(scopes_.begin(), scopes_.end(), [](const Scope& s) { return s.name.empty(); });
    for (const char* value : {"", " = {1}"}) {
      if (others) edits_[d.begin].before += guard("__attribute__((weak)) ", value);
      if (!others && !d.is_template) edits_[d.begin].before += guard("__attribute__((used)) static ", value);
    }
    if (text == "__constant__" && !d.is_template) {
      std::string within;
      for (const Scope& scope : scopes_) within += scope.name.empty() ? "" : scope.name + "::";
      for (const std::string_view name : d.variables) {
        constants_ += (constants_.empty() ? "sizeof(::" : " + sizeof(::") + within + std::string(name) + ")";
        last_constant_ = i;
      }
    }
    const char* const what = has(d, "__managed__") ? "managed" : has(d, "__constant__") ? "constant" : "device";
    for (const std::string_view name : d.variables) {
      const std::string which =
          d.is_template ? '"' + std::to_string(name.size()) + std::string(name) + "I\"" : std::string(name);
      edits_[d.end].after += std::string(" static const ::simt::Device") + (d.is_template ? "Template" : "Variable") +
                             " simt_variable_" + std::to_string(variables_++) + "{" + which +
                             ", ::simt::DeviceVariable::" + what + "};";
    }
  }

  // What a device variable begins with has to be known when the program is compiled.
  void find_call_in_value(const Declaration& d) {
    static const std::set<std::string_view> computed = {"sqrt", "sqrtf", "sin",  "sinf", "cos",  "cosf", "exp",
                                                        "expf", "log",   "logf", "pow",  "powf", "tan",  "tanf"};
    Place i = d.begin;
    while (i < d.end && at(i) != "=") ++i;
    for (; i < d.end; ++i) {
      const std::string_view name = at(i);
      if (!is_word(i) || at(i + 1) != "(" || at(i - 1) == "::" || unevaluated(i)) continue;
      const bool vector = name.starts_with("make_") && name.back() >= '1' && name.back() <= '4';
      if (vector || computed.contains(name) || of_the_host_.contains(name) || device_functions_.contains(name))
        return wrong(i, "a call, " + std::string(name) +
                            "(), in the initial value of a variable of the device: it has "
                            "to be known when the program is compiled");
    }
  }

  // The constants of a file have 64 KB.
  void limit_constants() {
    if (constants_.empty() || size() == 0) return;
    const auto [file, line] = line_of(last_constant_);
    edits_[size() - 1].after += "\n# " + std::to_string(line) + " \"" + file + "\"\nstatic_assert(" + constants_ +
                                " <= 65536, \"the file's __constant__ variables take more than 65536 bytes\");\n";
  }

  void align(Place i) {
    replace(i, "__attribute__((aligned");
    if (at(i + 1) == "(" && partner_[i + 1] != nowhere) edits_[partner_[i + 1]].after += "))";
  }

  // A variable that no access may touch, between two that some may: else an access beside one would hit the next.
  std::string guard(const std::string& before, const std::string& value) {
    return before + "char simt_guard_" + std::to_string(guards_++) + "[128]" + value + "; ";
  }

  void shared(Place i) {
    const Place begin = statement_begin(i);
    Place end = i;
    while (end < size() && at(end) != ";")
      end = at(end) == "(" || at(end) == "[" || at(end) == "{" ? past(end) : end + 1;
    bool outside = false;
    for (Place k = begin; k < end; ++k) {
      if (at(k) == "extern" || at(k) == "static") outside = outside || at(k) == "extern", replace(k, "");
      if (at(k) == "[" || at(k) == "=") break;
    }
    if (outside) return dynamic_shared(i, begin, end);
    if (in_function()) {
      edits_[begin].before += guard("static thread_local __attribute__((used, aligned(16))) ", "");
      leave_out_constructors(i, begin, end);
    }
    replace(i, "static thread_local __attribute__((abi_tag(\"shared\"), aligned(16)))");
    for (Place k = i + 1; k < end && at(k) != "["; ++k) {
      if (at(k) != "alignas" || at(k + 1) != "(") continue;
      edits_[i].before += words(k, past(k + 1)) + " ";  // behind a type, C++ has no attribute
      remove(k, past(k + 1));
    }
  }

  // Of shared objects, between the keyword and the end: front.h says how.
  void leave_out_constructors(Place keyword, Place begin, Place end) {
    const Declaration d = declaration(keyword);
    Place type = keyword + 1, name = type;
    while (at(type) == "alignas" || takes_parentheses(at(type))) type = past(type + 1);
    static const std::set<std::string_view> plain = {"float", "double", "int",    "unsigned", "char",    "half",
                                                     "long",  "short",  "bool",   "float2",   "float4",  "int2",
                                                     "int4",  "size_t", "signed", "volatile", "uint32_t"};
    if (d.variables.empty() || plain.contains(at(type)) || has(keyword, end, "{") || has(keyword, end, "=")) return;
    while (name < end && (at(name) != d.variables.front() || is_word(name + 1) || at(name + 1) == "<")) ++name;
    if (name <= type || name >= end) return;
    const std::string object = "[[maybe_unused]] static thread_local const bool simt_object_";
    std::string names;
    for (const std::string_view each : d.variables) names += (names.empty() ? "" : ", ") + std::string(each);
    edits_[begin].before +=
        object + std::to_string(objects_++) + " = ::simt::before_object<" + words(type, name) + ">(); ";
    edits_[end].after += " " + object + std::to_string(objects_++) + " = ::simt::behind_objects(" + names + ");";
  }

  void dynamic_shared(Place keyword, Place begin, Place end) {
    replace(keyword, "");
    Place name = nowhere;
    Place i = begin;
    for (; i < end && at(i) != "[" && at(i) != ",";) {
      if (at(i) == "alignas" || at(i) == "__align__" || at(i) == "__builtin_align__" || at(i) == "__attribute__") {
        const Place after = past(i + 1);  // the engine aligns it
        remove(i, after);
        i = after;
        continue;
      }
      if (is_word(i)) name = i;
      const Place angle = at(i) == "<" ? close_of_angle(i) : nowhere;
      i = angle == nowhere ? i + 1 : angle + 1;
    }
    if (name == nowhere) return;
    std::string type;
    for (Place k = begin; k < name; ++k)
      if (!edits_[k].replaced) type += std::string(at(k)) + " ";
    std::string extents;
    for (Place k = i; k < end; ++k) extents += at(k);
    one_type(keyword, std::string(at(name)), type);
    if (!in_function()) {
      // Outside functions: an object that becomes the address.
      edits_[begin].before += "static ::simt::DynamicShared<";
      edits_[name].before += extents + "> ";
      remove(name + 1, end);
      return;
    }
    edits_[name].before += "(&";
    edits_[name].after += ")";
    edits_[end].before += " = *reinterpret_cast<" + type + "(*)" + extents + ">(::simt::dynamic_shared_memory())";
  }

  // All those of one name have one type. (Of types with names of their own, nothing is known here.)
  void one_type(Place keyword, const std::string& name, std::string type) {
    static const std::set<std::string_view> known = {"float",   "double",        "int",    "unsigned int",
                                                     "char",    "unsigned char", "float2", "float4",
                                                     "double2", "int2",          "int4",   "half"};
    type.pop_back();
    if (type == "unsigned") type = "unsigned int";
    if (!known.contains(type)) return;
    std::string within;
    for (const Scope& scope : scopes_) within += scope.name + "::";
    const auto [first, is_new] = dynamic_types_.try_emplace(within + name, type);
    if (!is_new && first->second != type)
      wrong(keyword, "extern __shared__ " + name + "[] is of " + type + " here and of " + first->second +
                         " above: nvcc takes one type for one name");
  }

  // --- Launches ---

  // The first token of the expression that ends at i.
  Place expression_begin(Place i) const {
    for (;;) {
      if (at(i) == ">") {
        const Place open = open_of_angle(i);
        if (open == nowhere || open == 0) return i;
        i = open - 1;
      }
      if ((at(i) == ")" || at(i) == "]") && partner_[i] != nowhere) {
        i = partner_[i];
        if (i == 0) return i;
        const std::string_view before = at(i - 1);
        const bool called = (is_word(i - 1) && !is_statement_keyword(before)) || before == ">" || before == "]";
        if (!called) return i;
        --i;
        continue;
      }
      if (i == 0) return i;
      if (at(i - 1) == "template" && i > 1) --i;
      if (at(i - 1) == "." || at(i - 1) == "->") {
        i -= 2;
        continue;
      }
      if (at(i - 1) != "::") return i;
      if (i > 1 && ((is_word(i - 2) && !is_statement_keyword(at(i - 2))) || at(i - 2) == ">")) {
        i -= 2;
        continue;
      }
      return i - 1;
    }
  }

  // The first > of the >>> that closes the <<< at i.
  Place close_of_launch(Place i) const {
    Place first = nowhere;
    int depth = 0;  // of angle brackets
    for (Place k = i + 3; k < size();) {
      const std::string_view text = at(k);
      if (text == ";" || text == ")" || text == "}") break;
      if (text == ">" && at(k + 1) == ">" && at(k + 2) == ">" && at(k + 3) == "(") {
        if (depth == 0) return k;
        if (first == nowhere) first = k;
      }
      if (text == "<") ++depth;
      if (text == ">") --depth;
      k = text == "(" || text == "[" || text == "{" ? past(k) : k + 1;
    }
    return first;
  }

  bool deduced(Place last) const {
    Place name = last;
    std::size_t said = 0;
    if (at(last) == ">") {
      const Place open = open_of_angle(last);
      if (open == nowhere || open == 0) return false;
      said = split(open + 1, last).size();
      name = open - 1;
    }
    const auto found = known_.find(std::string(at(name)));
    if (found == known_.end()) return false;
    const Known& known = found->second;
    return known.template_parameters > said || known.pack || known.default_arguments ||
           known.parameter_types.size() > 1;
  }

  void launch(Place i) {
    const Place close = close_of_launch(i);
    if (close == nowhere) return;
    const auto said = split(i + 3, close);
    if ((said.size() < 2 || said.size() > 4) && !has(i, close, "...")) {
      const auto [file, line] = line_of(i);
      mistakes_.push_back(
          {file, line,
           "a launch says two to four things, <<<blocks, threads, shared bytes, stream>>>, and this one " +
               std::to_string(said.size())});
    }
    if (const Place angle = at(i - 1) == ">" ? open_of_angle(i - 1) : nowhere; angle != nowhere)
      for (const auto& [from, to] : split(angle + 1, i - 1)) template_argument(at(from) == "&" ? from + 1 : from, to);
    const Place begin = expression_begin(i - 1);
    const bool by_call = deduced(i - 1);
    edits_[begin].before += by_call ? "::simt::deduced([&](auto&... simt_arguments) { " : "::simt::configure(";
    replace(i, by_call ? "(simt_arguments...); }, " : ", ");
    remove(i + 1, i + 3);
    replace(close, ")");
    remove(close + 1, close + 3);
    if (at(close + 3) != "(" || (!scopes_.empty() && scopes_.back().device)) return;
    for (const auto& [from, to] : split(close + 4, past(close + 3) - 1)) {
      by_its_name(from, to);
      value_parameter(from, to);
      if (!relaxed_ && !of_the_engine_[i]) lambda_argument(from, to);
    }
  }

  // A function of the host's, which the kernel would call.
  void template_argument(Place name, Place to) {
    if (name + 1 != to || !of_the_host_.contains(at(name)) || of_the_device_.contains(at(name))) return;
    if (means_a_variable(at(name)) || functions_.empty() || is_declared_between(functions_.back().open, name, at(name)))
      return;
    wrong(name, "a kernel has " + std::string(at(name)) +
                    "() as a template argument, which is the host's: it needs __device__");
  }

  // F of `template <Function F>` around the launch: a device function's address, it may be.
  void value_parameter(Place from, Place to) {
    if (from + 1 != to || !is_word(from) || functions_.empty()) return;
    const std::string name(at(from));
    for (const std::string& each : declaration(statement_begin(functions_.back().open)).template_parameters) {
      const bool type = each.starts_with("class ") || each.starts_with("typename ") || each.starts_with("int ");
      if (each.find("(* " + name + ")") == std::string::npos && (type || !each.ends_with(" " + name))) continue;
      edits_[from].before += "::simt::value_in_host_code(";
      edits_[from].after += ")";
    }
  }

  // A device variable's address, `table`, `&counter` or `&table[n]`, that host code gives to a kernel.
  void by_its_name(Place from, Place to) {
    const bool address = at(from) == "&";
    const Place begin = address ? from + 1 : from, name = at(begin) == "::" ? begin + 1 : begin;
    if (name >= to || !device_variables_.contains(at(name))) return;
    const std::string_view after = name + 1 < to ? at(name + 1) : ",";
    if (after != "," && after != "+" && after != "-" && after != "[" && after != ".") return;
    if (!address && (after == "[" || after == ".")) return;  // a value
    edits_[begin].before +=
        std::string("::simt::") + (address ? "address" : "array") + "_for_a_kernel(\"" + std::string(at(name)) + "\", ";
    edits_[name].after += ")";
  }

  // `[=](int i) {..}`, or the name of a variable that is one, of the host's: kernels cannot call it. (One that captures
  // nothing may become a pointer to a function, and its call is found: note_lambda.)
  void lambda_argument(Place from, Place to) {
    Place lambda = from;
    if (from + 1 == to && is_word(from) && !functions_.empty()) {
      for (lambda = functions_.back().open; lambda < from; ++lambda)
        if (at(lambda) == "[" && at(lambda - 1) == "=" && at(lambda - 2) == at(from) && at(lambda - 3) == "auto") break;
    }
    if (lambda >= to || at(lambda) != "[" || at(lambda + 1) == "]" || partner_[lambda] == nowhere) return;
    Place body = past(lambda);
    while (body < size() && at(body) != "{" && at(body) != ";") body = at(body) == "(" ? past(body) : body + 1;
    if (at(body) == "{" && !has(lambda, body, "__device__"))
      wrong(from,
            "a kernel's argument is a lambda function of the host's: it needs __device__, [=] __device__ (..) {..}");
  }

  // (void*)kernel, the runtime's way of naming a kernel, forgets the parameters' types.
  void keep_type_of_kernel(Place i) {
    if (at(i + 1) != "(") return;
    const Place k = i + 2;
    if (at(k) == "(" && (words(k + 1, past(k) - 1) == "void*" || words(k + 1, past(k) - 1) == "const void*"))
      remove(k, past(k));
    if (at(k) == "reinterpret_cast" && at(k + 1) == "<")
      if (const Place angle = close_of_angle(k + 1); angle != nowhere) remove(k, angle + 1);
  }

  // --- Inline PTX ---

  void assembly(Place i) {
    if (scopes_.empty() || !scopes_.back().device) return;  // the host's
    Place open = i + 1;
    while (at(open) == "volatile" || at(open) == "__volatile__" || at(open) == "__volatile") ++open;
    if (at(open) != "(" || partner_[open] == nowhere) return;
    const Place close = partner_[open];
    replace(i, "::simt::ptx");
    remove(i + 1, open);
    edits_[open].after += "__builtin_FILE(), __builtin_LINE(), ";
    int part = 0;  // the text, outputs, inputs, clobbers
    bool late = false;
    for (Place k = open + 1; k < close && kind(k) == Kind::string; ++k)
      late = late || at(k).find("wgmma") != std::string_view::npos;
    Place text_end = open + 1;
    if (at(open + 1) == "\"\"" && kind(open + 2) != Kind::string) {  // it only keeps the compiler from moving something
      part = 3;
      ++text_end;
    }
    for (Place k = text_end; k < close;) {
      const std::string_view text = at(k);
      if (text == ":" || text == "::") {
        part += text == ":" ? 1 : 2;
        replace(k, "");
      } else if (part > 2 || (part > 0 && text == ",")) {
        replace(k, "");
      } else if (part > 0) {
        k = operand(k, late);
        continue;
      }
      ++k;
    }
  }

  // [name] "=r"(x). `late`: a result that comes some time after the statement.
  Place operand(Place k, bool late) {
    std::string name;
    if (at(k) == "[") {
      name = at(k + 1);
      remove(k, k + 3);
      k += 3;
    }
    if (kind(k) != Kind::string || at(k + 1) != "(") return k + 1;
    const std::string_view constraint = at(k);
    const char* how = "in";
    std::string letter;
    for (const char c : constraint.substr(1, constraint.size() - 2)) {
      if (c == '=') how = "out";
      if (c == '+') how = late ? "late" : "inout";
      if (std::isalpha(static_cast<unsigned char>(c))) letter = c;
    }
    replace(k, std::string(", ::simt::ptx_") + how + "<'" + letter + "'>");
    if (!name.empty()) edits_[partner_[k + 1]].before += ", \"" + name + "\"";
    return past(k + 1);
  }

  std::string text() const { return text(0, tokens_.size()); }

  std::string text(std::size_t from, std::size_t to) const {
    std::string out;
    std::size_t next = std::lower_bound(code_.begin(), code_.end(), from) - code_.begin();
    for (std::size_t i = from; i < to; ++i) {
      out += tokens_[i].space;
      if (next < code_.size() && code_[next] == i) {
        const Edit& edit = edits_[next++];
        if (edit.before.starts_with(':') && out.ends_with(':')) out += ' ';  // behind a label
        if (edit.text.starts_with('_') && out.ends_with('"')) out += ' ';    // extern "C"__global__
        out += edit.before;
        out += edit.replaced ? std::string_view(edit.text) : tokens_[i].text;
        out += edit.after;
      } else {
        out += tokens_[i].text;
      }
    }
    return out;
  }

  std::vector<Token> tokens_;
  std::vector<std::size_t> code_;  // of tokens_
  std::vector<Place> partner_;     // of ( ) [ ] { }
  std::vector<Edit> edits_;
  bool inlining_, relaxed_;
  std::vector<bool> of_the_engine_;                      // of code_: written there
  std::vector<std::pair<std::string_view, int>> lines_;  // of code_: the file and the line
  std::map<std::string, Known> known_;
  std::vector<Scope> scopes_;
  std::set<std::string_view> types_;
  Place parameters_of_ = nowhere;
  std::vector<std::string> type_parameters_;
  std::set<Place> said_;  // declarations of variables that the engine is told of
  std::vector<Kernel> kernels_;
  std::vector<Function> functions_;
  std::vector<Own> own_;
  std::set<std::string_view> of_the_host_, of_the_device_, constant_of_the_host_;  // functions; constexpr
  struct Call {
    Place name, body;  // the brace before the function's body that calls
  };
  std::vector<Call> calls_;  // by device code
  std::vector<Place> exceptions_;
  std::map<std::string_view, OfTheDevice> device_functions_;
  std::set<std::string_view> host_arrays_, device_variables_;
  std::map<std::string, std::string> dynamic_types_;  // of dynamic shared memory, by its names
  std::vector<Mention> mentions_;
  std::vector<Guarded> guarded_;
  struct OwnFunction {
    std::string_view name;
    std::string said;
    Place body;
  };
  std::vector<OwnFunction> own_functions_;
  std::set<std::string> operators_of_the_device_;
  std::set<std::string_view> called_by_both_;  // by functions of both sides
  std::vector<Place> lambdas_;                 // the braces before their bodies
  std::string constants_;                      // all of them: the sum of their sizes
  Place last_constant_ = nowhere;
  std::vector<Wrong> mistakes_;
  bool has_main_ = false;
  bool by_pointer_ = false;  // kernels are launched by their addresses
  int variables_ = 0, guards_ = 0, objects_ = 0;
};

}  // namespace

Rewritten rewrite(std::string_view preprocessed, bool inlining, bool relaxed, std::string_view host) {
  if (host.empty() || host == preprocessed) return Rewriter(preprocessed, inlining, relaxed).run();
  return Rewriter(preprocessed, inlining, relaxed).run(Rewriter(host, inlining, relaxed));
}

}  // namespace simt::front
