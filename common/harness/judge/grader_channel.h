// How a program answers ./workbook grade, which does not believe what is printed: the code that it judges might have
// printed it. ./workbook grade names an open socket in WORKBOOK_GRADER_CHANNEL and sends a secret on it, and an answer
// counts only if the secret stands before it.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace judge {

// Made before any code runs that is judged: it takes the secret, and the socket's name out of the environment.
class GraderChannel {
 public:
  GraderChannel() {
    const char* const named = std::getenv("WORKBOOK_GRADER_CHANNEL");
    if (!named) return;
    socket_ = std::atoi(named);
    unsetenv("WORKBOOK_GRADER_CHANNEL");
    char text[64];
    const ssize_t length = read(socket_, text, sizeof text);
    if (length > 0) secret_.assign(text, size_t(length));
  }

  bool is_open() const { return socket_ >= 0; }

  void send(const std::string& answer) const {
    const std::string text = secret_ + answer;
    if (write(socket_, text.data(), text.size()) != ssize_t(text.size())) std::perror("WORKBOOK_GRADER_CHANNEL");
  }

 private:
  int socket_ = -1;
  std::string secret_;
};

}  // namespace judge
