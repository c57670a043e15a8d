// simt-compile: what stands before the compiler's command where a file is CUDA C++.
//
//   simt-compile g++ FLAGS -c mine.cu -o mine.o    preprocesses the file, rewrites it, compiles it
//   simt-compile --kernels g++ FLAGS mine.cu       its kernels, as JSON
//   simt-compile --rewritten g++ FLAGS mine.cu     what the compiler would see
//   simt-compile --prelude g++ FLAGS               compiles, beside this program, what every file begins with
//
// With -xcu before it, a file of another name is CUDA C++, too.
//
// A command that compiles no .cu file is run as it is: so it can be CMake's CXX_COMPILER_LAUNCHER.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "simt/front/rewrite.h"

namespace {

using Words = std::vector<std::string>;

// `any`: -x cu, with which every source is CUDA C++.
bool is_cuda(const std::string& word, bool any) {
  if (word.starts_with("-")) return false;
  const Words names = {".cu", ".cuh", ".cpp", ".cc", ".cxx", ".c"};
  return std::any_of(names.begin(), any ? names.end() : names.begin() + 2,
                     [&](const std::string& name) { return word.ends_with(name); });
}

// The compiler's command, taken apart.
struct Command {
  Words compiler;  // and all flags that both steps need
  Words preprocessing;
  std::string source, object;
  bool counts = false;  // for the engine that counts
};

// Flags of the preprocessor that have their value in the next word, if not in the same.
bool takes_a_word(const std::string& flag) {
  static const Words flags = {"-I",       "-D",  "-U",  "-isystem", "-iquote", "-idirafter",
                              "-include", "-MT", "-MF", "-MQ",      "-imacros"};
  return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

bool preprocesses(const std::string& flag) {
  if (flag == "-MD" || flag == "-MMD" || flag == "-MP") return true;
  for (const char* each : {"-I", "-D", "-U", "-isystem", "-include"})
    if (flag.starts_with(each)) return true;
  return false;
}

Command command_of(const Words& words) {
  Command command;
  bool any = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    any = any || word == "-xcu";
    if (word.starts_with("-DSIMT_TRACED")) command.counts = true;
    if (takes_a_word(word) && i + 1 < words.size()) {
      command.preprocessing.push_back(word);
      command.preprocessing.push_back(words[++i]);
    } else if (preprocesses(word)) {
      command.preprocessing.push_back(word);
    } else if (word == "-o" && i + 1 < words.size()) {
      command.object = words[++i];
    } else if (word == "-x" && i + 1 < words.size()) {
      ++i;
    } else if (is_cuda(word, any)) {
      command.source = word;
    } else if (word != "-c" && !word.starts_with("-x")) {
      command.compiler.push_back(word);
    }
  }
  return command;
}

// Runs the command; its exit status. What it complains of goes to the file, if one is named.
int run(const Words& words, const std::string& complaints = "") {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (!complaints.empty() && std::freopen(complaints.c_str(), "w", stderr) == nullptr) _exit(127);
    execvp(arguments[0], arguments.data());
    std::perror(arguments[0]);
    _exit(127);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) < 0) return 127;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// A file that goes when this program does.
class Temporary {
 public:
  explicit Temporary(std::string path) : path_(std::move(path)) {}
  ~Temporary() { std::remove(path_.c_str()); }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// What every text begins with, behind the line that names its source: the engine's headers, half a second of the
// compiler's. They are compiled once, and a text that begins with the same letters, for the same compiler and flags,
// has them from there. (So a macro that makes something else of a header has it read as ever.)
class Prelude {
 public:
  explicit Prelude(const Words& compiler) {
    for (const std::string& word : compiler) flags_ += word + " ";
    std::string program(4096, '\0');
    const ssize_t length = readlink("/proc/self/exe", program.data(), program.size());
    place_ = program.substr(0, length < 0 ? 0 : length) + ".prelude";
  }

  // Of the text of an empty file, which is called /dev/null.
  int make(const Words& compiler, const std::string& text) const {
    const std::size_t from = text.find('\n') + 1;
    const std::string headers = text.substr(from, text.find("# 1 \"/dev/null\"", from) - from);
    std::remove(place_.c_str());
    const Temporary source(place_ + ".ii");
    std::ofstream(source.path(), std::ios::binary) << headers;
    const int status = run(joined(compiler, {"-xc++-header", "-fpreprocessed", source.path(), "-o", compiled()}));
    if (status == 0) std::ofstream(place_, std::ios::binary) << flags_ << '\n' << headers;
    return status;
  }

  // The text without it, if it begins with it.
  std::string left_out(const std::string& text) const {
    const std::string known = contents(place_);
    const std::size_t headers = flags_.size() + 1, from = text.find('\n') + 1, length = known.size() - headers;
    if (known.size() <= headers || known.compare(0, headers, flags_ + "\n") != 0) return text;
    if (text.compare(from, length, known, headers) != 0) return text;
    return text.substr(0, from) + "#pragma GCC pch_preprocess \"" + compiled() + "\"\n" + text.substr(from + length);
  }

  std::string compiled() const { return place_ + ".gch"; }

 private:
  std::string flags_, place_;
};

// The words as JSON.
std::string quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string quoted(const Words& words) {
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : ", ") + quoted(word);
  return "[" + list + "]";
}

void print_kernels(const simt::front::Rewritten& rewritten) {
  std::cout << "{\"main\": " << (rewritten.has_main ? "true" : "false") << ", \"kernels\": [";
  const char* comma = "";
  for (const simt::front::Kernel& kernel : rewritten.kernels) {
    Words types, names;
    for (const auto& [type, name] : kernel.parameters) types.push_back(type), names.push_back(name);
    std::cout << comma << "\n {\"name\": " << quoted(kernel.name) << ", \"within\": " << quoted(kernel.within)
              << ", \"template\": " << quoted(kernel.template_parameters) << ", \"types\": " << quoted(types)
              << ", \"names\": " << quoted(names) << ", \"file\": " << quoted(kernel.file)
              << ", \"line\": " << kernel.line << "}";
    comma = ",";
  }
  std::cout << "]}\n";
}

// Whether the source, or a header of the user's that the preprocessed text names, has the word in it.
bool asks_for_architecture(const std::string& text, const std::string& source) {
  std::set<std::string> files = {source};
  for (std::size_t at = 0; (at = text.find("\n# ", at)) != std::string::npos; ++at) {
    const std::size_t quote = text.find('"', at), end = text.find('"', quote + 1);
    const std::size_t line_end = text.find('\n', at + 1);
    if (quote > line_end || end > line_end) continue;
    const bool system = text.substr(end, line_end - end).find('3') != std::string::npos;
    const std::string file = text.substr(quote + 1, end - quote - 1);
    if (!system && file.find("/simt/") == std::string::npos) files.insert(file);
  }
  for (const std::string& file : files)
    if (contents(file).find("__CUDA_ARCH__") != std::string::npos) return true;
  return false;
}

// The first header of a CUDA toolkit that the preprocessed text has; empty if it has none. The engine's are found
// before them, so it is one that the engine does not have.
std::string toolkit_header(const std::string& text) {
  const std::size_t marker =
      text.find("/crt/host_defines.h\"");  // which all of them include, and which defines the keywords
  if (marker == std::string::npos) return "";
  const std::size_t quote = text.rfind('"', marker);
  const std::size_t first = text.find(text.substr(quote, marker + 1 - quote));
  return text.substr(first + 1, text.find('"', first + 1) - first - 1);
}

}  // namespace

int main(int argc, char** argv) {
  Words words(argv + 1, argv + argc);
  std::string mode;
  if (!words.empty() && (words[0] == "--kernels" || words[0] == "--rewritten" || words[0] == "--prelude")) {
    mode = words[0];
    words.erase(words.begin());
  }
  Command command = command_of(words);
  if (mode == "--prelude") command.source = "/dev/null";
  const bool compiles = std::find(words.begin(), words.end(), "-c") != words.end();
  if (words.empty() || (command.source.empty() && !mode.empty())) {
    std::cerr << "usage: simt-compile [--kernels | --rewritten] g++ FLAGS FILE.cu, or --prelude g++ FLAGS\n";
    return 2;
  }
  if (mode.empty() && (command.source.empty() || !compiles)) {
    std::vector<char*> arguments(argv + 1, argv + argc);
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    std::perror(arguments[0]);
    return 127;
  }

  const std::string object = command.object.empty() ? "a.o" : command.object;
  const char* const directory = std::getenv("TMPDIR");
  const std::string beside =
      mode.empty() ? object : std::string(directory ? directory : "/tmp") + "/simt-compile." + std::to_string(getpid());
  const Temporary preprocessed(beside + ".cu.ii"), rewritten_file(beside + ".ii");
  const Words keywords = {"-DSIMT_FRONT", "-D__CUDACC__", "-D__NVCC__"};
  const auto preprocess = [&](const Words& more, const Temporary& into) {
    return run(joined(joined(joined(joined(command.compiler, keywords), more), command.preprocessing),
                      {"-E", "-xc++", command.source, "-o", into.path()}));
  };
  if (const int status = preprocess({"-D__CUDA_ARCH__=900"}, preprocessed); status != 0) return status;
  const std::string text = contents(preprocessed.path());
  // Where the file asks for __CUDA_ARCH__, the host's side may be another.
  std::string host;
  if (mode != "--kernels" && asks_for_architecture(text, command.source)) {
    const Temporary of_host(beside + ".host.ii");
    if (const int status = preprocess({}, of_host); status != 0) return status;
    host = contents(of_host.path());
  }
  if (const std::string header = toolkit_header(text); !header.empty()) {
    std::cerr << command.source << ": error: it includes " << header << ", which is not part of the engine\n";
    return 1;
  }
  const bool relaxed = std::find(command.preprocessing.begin(), command.preprocessing.end(),
                                 "-DSIMT_RELAXED_CONSTEXPR") != command.preprocessing.end();
  const simt::front::Rewritten rewritten = simt::front::rewrite(text, command.counts, relaxed, host);
  for (const simt::front::Wrong& each : rewritten.mistakes)
    std::cerr << each.file << ":" << each.line << ":1: error: " << each.what << "\n";
  if (!rewritten.mistakes.empty()) return 1;
  if (mode == "--kernels") {
    print_kernels(rewritten);
    return 0;
  }
  if (mode == "--rewritten") {
    std::cout << rewritten.text;
    return 0;
  }
  const Prelude prelude(command.compiler);
  if (mode == "--prelude") return prelude.make(command.compiler, rewritten.text);
  // The caret would point into the rewritten line.
  const Words step = joined(
      command.compiler, {"-fno-diagnostics-show-caret", "-c", "-xc++-cpp-output", rewritten_file.path(), "-o", object});
  const Temporary complaints(beside + ".errors");
  std::string said;
  const auto compile = [&](const std::string& text) {
    std::ofstream(rewritten_file.path(), std::ios::binary) << text;
    const int status = run(step, complaints.path());
    said = contents(complaints.path());
    return status;
  };
  int status = compile(prelude.left_out(rewritten.text));
  if (status != 0 && said.find(prelude.compiled()) != std::string::npos)  // another version of the compiler made it
    status = compile(rewritten.text);
  if (status != 0 && command.counts &&
      said.find("always_inline") != std::string::npos)  // functions that call each other
    status = compile(simt::front::rewrite(text, /*inlining=*/false, relaxed, host).text);
  std::cerr << said;
  return status;
}
