// What a program can do where a compiler runs on what was handed in; ./workbook grade asks before it lets one run
// there.
//
//   probe PORT DIRECTORY FILE     prints JSON: can it connect to that port of this machine, write to the directory and
//                                 to others, read the file, see other processes; and what limits it has
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace {

bool connects(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET, address.sin_port = htons(uint16_t(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int to = socket(AF_INET, SOCK_STREAM, 0);
  return to >= 0 && connect(to, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

bool writes(const std::string& directory) {
  const std::string path = directory + "/" + std::to_string(getpid()) + ".tried";
  FILE* const file = std::fopen(path.c_str(), "w");
  if (file) std::fclose(file), std::remove(path.c_str());
  return file != nullptr;
}

int processes_seen() {
  int seen = 0;
  std::error_code none;
  for (const auto& one : std::filesystem::directory_iterator("/proc", none))
    if (std::isdigit(one.path().filename().string()[0])) seen++;
  return seen;
}

long long limit_of(__rlimit_resource which) {
  rlimit found = {};
  getrlimit(which, &found);
  return found.rlim_cur == RLIM_INFINITY ? -1 : static_cast<long long>(found.rlim_cur);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const auto said = [](bool is) { return is ? "true" : "false"; };
  std::string temporary;
  for (const std::string place : {"/tmp", "/var/tmp", "/dev/shm"})
    if (writes(place)) temporary += (temporary.empty() ? "\"" : ", \"") + place + "\"";
  std::printf(
      "{\"user\": %u, \"network\": %s, \"writes\": %s, \"temporary\": [%s], \"reads\": %s, \"alone\": %s, "
      "\"processes\": %lld, \"memory\": %lld}\n",
      getuid(), said(connects(std::atoi(argv[1]))), said(writes(argv[2])), temporary.c_str(),
      said(access(argv[3], R_OK) == 0), said(processes_seen() < 10), limit_of(RLIMIT_NPROC), limit_of(RLIMIT_DATA));
}
