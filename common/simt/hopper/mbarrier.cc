#include "simt/hopper/mbarrier.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "simt/engine/engine.h"

namespace simt {

std::string Mbarrier::name() const {
  return "the mbarrier of " + text(made_) + " at " + block.shared().place(address) +
         (block.cluster().size() > 1 ? " of block " + text(block.index()) : "");
}

std::string Mbarrier::state() const {
  std::string state = "phase " + std::to_string(phase_) + ": " + std::to_string(arrivals_ - lacking_) + " of " +
                      std::to_string(arrivals_) + " arrivals have come";
  if (bytes_ > 0) state += ", " + std::to_string(bytes_) + " of the expected bytes have not";
  if (bytes_ < 0) state += ", and " + std::to_string(-bytes_) + " bytes more than any arrival expects";
  return state;
}

std::string Mbarrier::what(const Worker&) const { return name() + " is in " + state(); }

void Mbarrier::arrive(int arrivals, int expected_bytes, const Wait& call, Worker& worker) {
  bytes_ += expected_bytes;
  if (lacking_ < arrivals || std::abs(bytes_) >= 1 << 20)
    worker.fail(cudaErrorLaunchFailure, &worker.current(), text(call.site),
                std::string(call.name) + ": " + name() + " is in " + state() +
                    (lacking_ < arrivals ? ", and one more arrives" : ": it cannot count more than 1048575"));
  if (arrivals_ > 1 && arrivals > 0) worker.observe(&Observer::mbarrier_arrival, *this, call);
  lacking_ -= arrivals;
  if (arrivals > 0 && lacking_ == 0) cp_asyncs_.land(cp_asyncs_.size(), worker);
  if (arrivals > 0) worker.observe(&Observer::arrived, *this, false);
  complete_if_nothing_lacks(worker);
}

void Mbarrier::start(const BulkCopy& copy, Worker& worker) {
  if (!fenced)
    worker.fail(cudaErrorLaunchFailure, &worker.current(), line_of(copy.pc),
                std::string(copy.name()) +
                    ": no fence.mbarrier_init, and no fence.proxy.async, by the thread that made " + name());
  std::memset(block.shared().now(copy.shared), 0xff, static_cast<std::size_t>(copy.bytes));
  copies_.push_back(copy);
  bytes_ -= copy.bytes;
  complete_if_nothing_lacks(worker);
}

void Mbarrier::start(const Copy& copy, Worker& worker) { cp_asyncs_.start(copy, worker); }

void Mbarrier::complete_if_nothing_lacks(Worker& worker) {
  if (lacking_ != 0 || bytes_ != 0) return;
  ++phase_;
  lacking_ = arrivals_ -= std::exchange(dropped_, 0);
  worker.observe(&Observer::phase_completes, *this);
  landing_.insert(landing_.end(), copies_.begin(), copies_.end());
  copies_.clear();
  if (waiting_.warps == 0) return;
  land(worker);
  block.release_threads(*this, waiting_);
}

void Mbarrier::wait(unsigned parity, const Wait& wait, Worker& worker) {
  const bool is_under_way = phase_ % 2 == parity;
  const unsigned phases = phase_ + is_under_way;  // have to be complete
  if (is_under_way) {
    worker.wait_for(wait, *this, waiting_);
  } else {
    land(worker);
    worker.pass(orders, this);
  }
  if (phases > 0) worker.observe(&Observer::waited_for, *this, phases - 1, wait);
}

void Mbarrier::land(Worker& worker) {
  for (const BulkCopy& copy : std::exchange(landing_, {})) {
    copy.carry_out();
    worker.observe(&Observer::bulk_load_lands, copy, *this);
  }
}

std::string Mbarrier::left_over(const Worker& worker) const {
  if (bytes_ != 0) return "the block has ended, and " + what(worker);
  if (const Copy* const copy = cp_asyncs_.oldest())
    return "the block has ended, and " + name() + " never completed the copy of " + line_of(copy->pc) + ": " + state();
  for (const auto* copies : {&landing_, &copies_})
    if (!copies->empty())
      return std::string("the block has ended, and nobody has waited for the ") + copies->front().name() + " of " +
             line_of(copies->front().pc) + ", which phase " + std::to_string(phase_ - (copies == &landing_)) + " of " +
             name() + " completes";
  return "";
}

Mbarrier& Mbarriers::make(const void* address, int arrivals, const Site& site, Worker& worker) {
  const auto wrong = [&](const std::string& what) {
    worker.fail(cudaErrorLaunchFailure, &worker.current(), text(site), "mbarrier.init: " + what);
  };
  if (arrivals < 1 || arrivals >= 1 << 20) wrong(std::to_string(arrivals) + " arrivals: must be 1 to 1048575");
  if (reinterpret_cast<std::uintptr_t>(address) % 8 != 0) wrong("the address is not a multiple of 8");
  if (Mbarrier* const there = find(address)) {
    if (there->is_as_made(arrivals) && there->maker != worker.current().number) return *there;  // by several threads
    wrong("there is " + there->name());
  }
  if (!worker.shared().contains(address, 8)) wrong("the address is not in shared memory");
  return all_.emplace_back(worker, static_cast<unsigned>(all_.size()), address, arrivals, site,
                           worker.current().number);
}

bool Mbarriers::fenced_by(unsigned thread) const {
  return std::any_of(all_.begin(), all_.end(), [=](const Mbarrier& m) { return m.fenced && m.maker == thread; });
}

Mbarrier* Mbarriers::find(const void* address) {
  for (Mbarrier& mbarrier : all_)
    if (mbarrier.address == address) return &mbarrier;
  return nullptr;
}

}  // namespace simt
