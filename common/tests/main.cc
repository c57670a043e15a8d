// GoogleTest's main. Where there is no GPU, tests that need one are skipped, and CTest would call that a success: the
// last line says how many did not run. With REQUIRE_GPU=1 in the environment they fail instead: see gpu_required().
//
// ./workbook grade does not believe what is printed, for the code that it judges might have printed it. It names an
// open socket in WORKBOOK_WITNESS, on which it first sends a secret; there the secret comes back with the counts.
// Whoever is not to see the secret, nor anything that is made later, gets a process of its own before.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

void before_all_tests() __attribute__((weak));  // called if the program has it

namespace {

// The socket and the secret, if somebody wants to know: read before any test runs.
struct Witness {
  int socket = -1;
  std::string secret;

  Witness() {
    const char* const named = std::getenv("WORKBOOK_WITNESS");
    if (!named) return;
    socket = std::atoi(named);
    unsetenv("WORKBOOK_WITNESS");
    char text[64];
    const ssize_t length = read(socket, text, sizeof text);
    if (length > 0) secret.assign(text, size_t(length));
  }

  void testify(const testing::UnitTest& tests) const {
    if (socket < 0) return;
    const std::string text = secret + " " + std::to_string(tests.successful_test_count()) + " " +
                             std::to_string(tests.failed_test_count()) + "\n";
    if (write(socket, text.data(), text.size()) != ssize_t(text.size())) std::perror("WORKBOOK_WITNESS");
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (before_all_tests) before_all_tests();
  const Witness witness;
  testing::InitGoogleTest(&argc, argv);
  const int status = RUN_ALL_TESTS();
  const int skipped = testing::UnitTest::GetInstance()->skipped_test_count();
  if (skipped > 0) std::printf("NOT RUN: %d tests, for want of a GPU\n", skipped);
  witness.testify(*testing::UnitTest::GetInstance());
  return status;
}
