// Raw bytes of a known number over a socket, for programs that share nothing else.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>

namespace harness {

// False if the other end has gone.
inline bool receive(int from, void* to, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t now = read(from, static_cast<char*>(to) + done, bytes - done);
    if (now <= 0) return false;
    done += size_t(now);
  }
  return true;
}

// MSG_NOSIGNAL: if the other process has gone, the answer that does not come says so.
inline bool send_all(int to, const void* from, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t now = send(to, static_cast<const char*>(from) + done, bytes - done, MSG_NOSIGNAL);
    if (now <= 0) return false;
    done += size_t(now);
  }
  return true;
}

}  // namespace harness
