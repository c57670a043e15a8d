// Which launches and copies of a program are ordered by its streams, events and waits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

namespace simt {

class StreamOrder {
 public:
  using Stream = const void*;                     // null: the default stream
  using Known = std::map<Stream, std::uint32_t>;  // of each stream the last operation that comes before

  void made(Stream stream, bool blocking) {
    several_ = true;
    known_[stream] = host_;
    blocking_[stream] = blocking;
  }
  bool several() const { return several_; }

  // An operation begins in the stream: its number. What it may rely on is `current()`.
  std::uint32_t begin(Stream stream) {
    Known& own = known_[stream];
    join(own, host_);
    meet(stream, own);
    current_ = own;
    return own[stream] = last_[stream] = ++operations_;
  }
  bool ordered(Stream stream, std::uint32_t operation) const {
    const auto found = current_.find(stream);
    return found != current_.end() && operation <= found->second;
  }

  bool host_knows(Stream stream, std::uint32_t operation) const {
    const auto found = host_.find(stream);
    return found != host_.end() && operation <= found->second;
  }

  bool host_knows_all() const {
    return std::all_of(last_.begin(), last_.end(),
                       [&](const auto& each) { return host_knows(each.first, each.second); });
  }

  void host_waits() {
    for (const auto& [stream, known] : known_) join(host_, known);
  }
  void host_waits(Stream stream) {
    join(host_, known_[stream]);
    if (stream != nullptr) return;
    for (const auto& [other, known] : known_)
      if (blocks(other)) join(host_, known);
  }
  // Without having waited for it otherwise, the host knows that the operation is done.
  void host_learns(Stream stream, std::uint32_t operation) { join(host_, {{stream, operation}}); }
  // The event is an operation of its stream, too.
  void record(const void* event, Stream stream) {
    Known& own = known_[stream];
    meet(stream, own);
    Event& made = events_[event] = {own, stream, ++operations_};
    own[stream] = made.number;
  }
  void wait(Stream stream, const void* event) {
    Known& own = known_[stream];
    meet(stream, own);
    join(own, events_[event]);
  }
  void host_waits_for_event(const void* event) { join(host_, events_[event]); }
  // Whether the host has waited for what comes before the event; `itself`: and for the event.
  bool has_ended(const void* event, bool itself) {
    const Event& one = events_[event];
    return std::all_of(one.before.begin(), one.before.end(),
                       [&](const auto& each) { return host_[each.first] >= each.second; }) &&
           (!itself || host_[one.stream] >= one.number);
  }
  // Whether all that was begun in any stream comes before what the stream begins next. An event is no such thing.
  bool knows_all(Stream stream) {
    const Known& own = known_[stream];
    return std::all_of(last_.begin(), last_.end(), [&](const auto& each) {
      const auto known = own.find(each.first);
      return known != own.end() && known->second >= each.second;
    });
  }

 private:
  struct Event {
    Known before;  // the last operations that it comes after
    Stream stream = nullptr;
    std::uint32_t number = 0;
  };
  static void join(Known& known, const Known& other) {
    for (const auto& [stream, operation] : other) known[stream] = std::max(known[stream], operation);
  }
  static void join(Known& known, const Event& event) {
    join(known, event.before);
    join(known, {{event.stream, event.number}});
  }
  // The default stream and those that block come one after the other.
  void meet(Stream stream, Known& own) {
    if (stream != nullptr) {
      if (blocks(stream)) join(own, known_[nullptr]);
      return;
    }
    for (const auto& [other, known] : known_)
      if (other != nullptr && blocks(other)) join(own, known);
  }
  bool blocks(Stream stream) const {
    const auto found = blocking_.find(stream);
    return found == blocking_.end() || found->second;
  }

  bool several_ = false;
  std::uint32_t operations_ = 0;
  std::map<Stream, Known> known_;
  std::map<Stream, bool> blocking_;
  std::map<const void*, Event> events_;
  Known host_, current_, last_;  // of each stream the last operation that was begun, which an event is not
};

}  // namespace simt
