// Starts a program that nobody trusts so that it can compute, and talk over one socket, and do nothing else:
//
//   confine PROGRAM WORDS.. < SOCKET     with its wishes in the environment, each of which is a layer of its own:
//
//   CONFINE_USER=61001         it runs as this user and group (where we are root)
//   CONFINE_ROOT=DIR           its root directory is this one, which should be empty
//   CONFINE_NAMESPACES=1       no network, and no other processes than itself
//   CONFINE_MEMORY, _SECONDS   so many bytes of data, so many seconds of processor time; no files, no processes
//   CONFINE_CALLS=1            it may make the system calls listed below, which seccomp (libseccomp) sees to
//
// The layers that hold are printed in one line, as in "user root namespaces limits calls", before the program starts.
// What cannot be had on this machine is left out of that line, and somebody else decides whether that is enough.
//
// All of it is there from the program's first instruction on, before its initializers. The program gets the socket as
// file 3 and its own file, to be read, as file 4. Its status is ours, 1 for 125 and up, which say that it has not
// started; a signal that ends it ends us.
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef HAVE_SECCOMP
#include <seccomp.h>
#endif

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr int socket_file = 3, own_file = 4, program_file = 5;

const char* wish(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? value : nullptr;
}

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "confine: %s: %s\n", what, std::strerror(errno));
  std::exit(125);
}

bool limit(__rlimit_resource which, rlim_t most) {
  const rlimit both = {most, most};
  return setrlimit(which, &both) == 0;
}

#ifdef HAVE_SECCOMP
// What computing takes, and reading and writing the socket. The C library's start asks for a little more, and goes on
// without. Everything else ends the program.
scmp_filter_ctx calls() {
  scmp_filter_ctx list = seccomp_init(SCMP_ACT_KILL_PROCESS);
  if (!list) return nullptr;
  bool well = true;
  const auto allow = [&](int call) { well = seccomp_rule_add(list, SCMP_ACT_ALLOW, call, 0) == 0 && well; };
  const auto allow_if = [&](int call, scmp_arg_cmp one) {
    well = seccomp_rule_add(list, SCMP_ACT_ALLOW, call, 1, one) == 0 && well;
  };
  const auto refuse = [&](int call, int error) {
    well = seccomp_rule_add(list, SCMP_ACT_ERRNO(error), call, 0) == 0 && well;
  };
  // Memory of its own: none that can be executed, and no file but its own, which it may see.
  for (const int call : {SCMP_SYS(mmap), SCMP_SYS(mprotect)})
    allow_if(call, SCMP_A2(SCMP_CMP_MASKED_EQ, 4 /* PROT_EXEC */, 0));
  for (const int call : {SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(brk)}) allow(call);
  // The socket, and what is thrown away.
  for (const int call : {SCMP_SYS(read), SCMP_SYS(recvfrom), SCMP_SYS(sendto)})
    allow_if(call, SCMP_A0(SCMP_CMP_EQ, socket_file));
  for (const int call : {SCMP_SYS(write), SCMP_SYS(writev)}) allow_if(call, SCMP_A0(SCMP_CMP_LE, socket_file));
  for (const int call : {SCMP_SYS(fstat), SCMP_SYS(newfstatat)}) allow_if(call, SCMP_A0(SCMP_CMP_LE, own_file));
  // Threads of this process, of which the engine has one that looks at the time, and their signals.
  allow_if(SCMP_SYS(clone),
           SCMP_A0(SCMP_CMP_EQ, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                                    CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID));
  refuse(SCMP_SYS(clone3), ENOSYS);  // its flags cannot be seen here: the C library then takes clone
  allow_if(SCMP_SYS(tgkill), SCMP_A0(SCMP_CMP_EQ, scmp_datum_t(getpid())));
  for (const int call :
       {SCMP_SYS(futex), SCMP_SYS(set_robust_list), SCMP_SYS(set_tid_address), SCMP_SYS(rseq), SCMP_SYS(arch_prctl),
        SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn), SCMP_SYS(sigaltstack),
        SCMP_SYS(sched_yield), SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(restart_syscall)})
    allow(call);
  // Which kernel this is: the C library of Ubuntu 22.04 starts on none that does not say.
  allow(SCMP_SYS(uname));
  // The time, and chance.
  for (const int call : {SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday), SCMP_SYS(clock_nanosleep),
                         SCMP_SYS(getrandom), SCMP_SYS(exit), SCMP_SYS(exit_group)})
    allow(call);
  // That is this program's start, and never again: no call that is allowed opens a file of that number.
  allow_if(SCMP_SYS(execveat), SCMP_A0(SCMP_CMP_EQ, program_file));
  for (const int call : {SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(access),
                         SCMP_SYS(faccessat), SCMP_SYS(prlimit64), SCMP_SYS(getrlimit), SCMP_SYS(sched_getaffinity),
                         SCMP_SYS(sysinfo), SCMP_SYS(ioctl), SCMP_SYS(prctl)})
    refuse(call, EPERM);
  if (well) return list;
  seccomp_release(list);
  return nullptr;
}
#endif

// In the process that becomes the program, which has no way back.
[[noreturn]] void become(char** words, std::string held, bool* started) {
  if (const char* root = wish("CONFINE_ROOT"); root && chroot(root) == 0 && chdir("/") == 0) held += " root";
  const char *memory = wish("CONFINE_MEMORY"), *seconds = wish("CONFINE_SECONDS");
  const char* const user = wish("CONFINE_USER");
  if (memory && seconds && limit(RLIMIT_DATA, std::strtoull(memory, nullptr, 10)) &&
      limit(RLIMIT_CPU, std::strtoull(seconds, nullptr, 10)) && limit(RLIMIT_FSIZE, 0) && limit(RLIMIT_CORE, 0) &&
      limit(RLIMIT_NOFILE, program_file + 1) && limit(RLIMIT_MSGQUEUE, 0) && limit(RLIMIT_MEMLOCK, 0) &&
      (!user || geteuid() != 0 || limit(RLIMIT_NPROC, 16)))
    held += " limits";
  if (user && geteuid() == 0) {
    const unsigned id = unsigned(std::atoi(user));
    if (setgroups(0, nullptr) == 0 && setresgid(id, id, id) == 0 && setresuid(id, id, id) == 0) held = " user" + held;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a change of the user forgets it
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("PR_SET_NO_NEW_PRIVS");
#ifdef HAVE_SECCOMP
  scmp_filter_ctx list = wish("CONFINE_CALLS") ? calls() : nullptr;
  const bool listed = list != nullptr;
#else
  const bool listed = false;
#endif
  if (listed) held += " calls";
  dprintf(1, "%s\n", held.empty() ? "" : held.c_str() + 1);
  const int nothing = 2;  // is /dev/null by now
  dup2(nothing, 1);
  dup2(nothing, 0);
  for (int file = program_file + 1; file < 1024; file++) close(file);
#ifdef HAVE_SECCOMP
  if (list && seccomp_load(list) != 0) _exit(125);
#endif
  char* none[] = {nullptr};
  *started = true;  // memory that the program does not have any more
  syscall(SYS_execveat, program_file, "", words, none, AT_EMPTY_PATH);
  *started = false;
  _exit(126);
}

// So that nobody's numbers are in the way.
void place(int file, int at, int flags) {
  if (file < 0 || dup3(file, at, flags) < 0) fail("a file");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: confine PROGRAM WORDS..\n", stderr);
    return 125;
  }
  // The numbers from 100 on, so that none of those to come is taken yet.
  const int socket = fcntl(0, F_DUPFD, 100), program = open(argv[1], O_RDONLY);
  if (program < 0) fail(argv[1]);
  const int high = fcntl(program, F_DUPFD, 100), nothing = fcntl(open("/dev/null", O_RDWR), F_DUPFD, 100);
  place(socket, socket_file, 0);
  place(high, own_file, 0);
  place(high, program_file, O_CLOEXEC);

  std::string held;
  if (wish("CONFINE_NAMESPACES")) {
    const int apart = CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNS;
    if (unshare(apart) == 0 || (geteuid() != 0 && unshare(CLONE_NEWUSER | apart) == 0)) held = " namespaces";
  }
  void* const shared = mmap(nullptr, sizeof(bool), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) fail("mmap");
  bool* const started = static_cast<bool*>(shared);
  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    place(nothing, 2, 0);
    become(argv + 1, held, started);
  }
  for (const int file : {socket_file, socket, 0, 1}) close(file);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) {
    const rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    std::signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
  }
  // Ours, for what has not started, are no program's.
  return *started && WEXITSTATUS(status) >= 125 ? 1 : WEXITSTATUS(status);
}
