// SPDX-License-Identifier: Apache-2.0
// libheed_mpi.so: the communicator over MPI. The only file that knows MPI.
#include <mpi.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>

#include "heed/base/error.h"
#include "heed/dist/communicator.h"
#include "heed/dist/module.h"

namespace heed::dist {
namespace {

using Clock = std::chrono::steady_clock;

// MPI counts in int.
constexpr size_t kMostBytes = size_t{1} << 30;
// How long a rank waits for a message of a step. A rank that has died ends the job at once, by mpirun or srun: this is
// for one that hangs.
constexpr double kPatienceSeconds = 600;

void check(const char* what, int code) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw Error(std::string("MPI: ") + what + ": " + text.data());
}

double patience() {
  const char* given = std::getenv("HEED_MPI_TIMEOUT");  // NOLINT(concurrency-mt-unsafe): nothing here sets variables
  const double seconds = given ? std::strtod(given, nullptr) : 0;
  return seconds > 0 ? seconds : kPatienceSeconds;
}

void sleep_for(long microseconds) {
  const timespec time{0, 1000 * microseconds};
  ::nanosleep(&time, nullptr);
}

// Asks until it is done; between, the core is left to others: a rank may wait for minutes while the first one looks at
// the dev set. 0 seconds: without end.
void wait_for(const std::function<bool()>& done, double seconds, const char* what) {
  constexpr double kSpin = 100e-6, kShort = 1;  // seconds: what belongs to a step, and what is a longer wait
  constexpr long kShortSleep = 20, kLongSleep = 500;
  const Clock::time_point begin = Clock::now();
  while (!done()) {
    const double waited = std::chrono::duration<double>(Clock::now() - begin).count();
    if (waited > kSpin) sleep_for(waited < kShort ? kShortSleep : kLongSleep);
    if (seconds > 0 && waited > seconds) {
      throw Error(std::string("MPI: ") + what + ": nothing came for " + std::to_string(static_cast<int>(seconds)) +
                  " seconds; does another rank hang? HEED_MPI_TIMEOUT sets another time");
    }
  }
}

// One message, or one collective.
class Request final : public Transfer::State {
 public:
  Request(const char* what, double seconds, int expected = -1) : what_(what), seconds_(seconds), expected_(expected) {}
  ~Request() override {
    if (request_ == MPI_REQUEST_NULL) return;
    if (expected_ >= 0) MPI_Cancel(&request_);
    MPI_Request_free(&request_);
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  MPI_Request* handle() { return &request_; }
  void wait() override {
    wait_for([this] { return done(); }, seconds_, what_);
  }
  bool done() override {
    if (request_ == MPI_REQUEST_NULL) return true;
    int done = 0;
    MPI_Status status;
    check(what_, MPI_Test(&request_, &done, &status));
    if (done != 0 && expected_ >= 0) check_length(status);
    return done != 0;
  }

 private:
  void check_length(const MPI_Status& status) const {
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    if (bytes == expected_) return;
    throw Error("communicator: a message of " + std::to_string(bytes) + " bytes came from rank " +
                std::to_string(status.MPI_SOURCE) + ", expected " + std::to_string(expected_));
  }

  const char* what_;
  const double seconds_;
  const int expected_;  // bytes to receive; below 0: it receives nothing
  MPI_Request request_ = MPI_REQUEST_NULL;
};

class Mpi final : public Communicator {
 public:
  Mpi() {
    check("begin", MPI_Comm_dup(MPI_COMM_WORLD, &world_));  // messages of others do not mix with ours
    MPI_Comm_set_errhandler(world_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(world_, &rank_);
    MPI_Comm_size(world_, &size_);
  }
  ~Mpi() override {
    // The others may wait for this rank for ever. It is an end by an error where one is thrown right now.
    if (std::uncaught_exceptions() > 0) MPI_Abort(world_, 1);
    MPI_Finalize();
  }
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Transfer start_sum(std::span<float> numbers) override {
    Transfer all;
    for_parts(numbers.size_bytes(), [&](size_t begin, int bytes) {
      float* part = numbers.data() + begin / sizeof(float);
      all.add(started("sum", patience_, -1, [&](MPI_Request* request) {
        const auto count = static_cast<int>(static_cast<size_t>(bytes) / sizeof(float));
        return MPI_Iallreduce(MPI_IN_PLACE, part, count, MPI_FLOAT, MPI_SUM, world_, request);
      }));
    });
    return all;
  }
  void barrier() override {
    started("barrier", patience_, -1, [&](MPI_Request* request) { return MPI_Ibarrier(world_, request); }).wait();
  }
  void progress() override {
    int found = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, world_, &found, MPI_STATUS_IGNORE);
  }
  void abort(const std::string& /*why*/) noexcept override { MPI_Abort(world_, 1); }

 protected:
  Transfer start_send_bytes(int to, std::span<const std::byte> data, int tag) override {
    Transfer all;
    for_parts(data.size(), [&](size_t begin, int bytes) {
      all.add(started("send", patience_, -1, [&](MPI_Request* request) {
        return MPI_Isend(data.data() + begin, bytes, MPI_BYTE, to, tag, world_, request);
      }));
    });
    return all;
  }
  Transfer start_receive_bytes(int from, std::span<std::byte> data, int tag) override {
    Transfer all;
    for_parts(data.size(), [&](size_t begin, int bytes) {
      all.add(started("receive", patience_, bytes, [&](MPI_Request* request) {
        return MPI_Irecv(data.data() + begin, bytes, MPI_BYTE, from, tag, world_, request);
      }));
    });
    return all;
  }
  // Followers wait here for the first rank's next step, whatever it does before: without end.
  void broadcast_bytes(int root, std::span<std::byte> data) override {
    for_parts(data.size(), [&](size_t begin, int bytes) {
      started("broadcast", 0, -1, [&](MPI_Request* request) {
        return MPI_Ibcast(data.data() + begin, bytes, MPI_BYTE, root, world_, request);
      }).wait();
    });
  }
  void all_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) override {
    if (mine.size() > kMostBytes) return Communicator::all_gather_bytes(mine, all);
    started("all_gather", patience_, -1, [&](MPI_Request* request) {
      const auto bytes = static_cast<int>(mine.size());
      return MPI_Iallgather(mine.data(), bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE, world_, request);
    }).wait();
  }

 private:
  // each(begin, bytes) for parts that MPI can count; one that is empty for nothing: it is a message, too.
  static void for_parts(size_t bytes, const std::function<void(size_t, int)>& each) {
    size_t begin = 0;
    do {
      const size_t part = std::min(kMostBytes, bytes - begin);
      each(begin, static_cast<int>(part));
      begin += part;
    } while (begin < bytes);
  }
  static Transfer started(const char* what, double seconds, int expected,
                          const std::function<int(MPI_Request*)>& start) {
    auto request = std::make_unique<Request>(what, seconds, expected);
    check(what, start(request->handle()));
    return Transfer(std::move(request));
  }

  MPI_Comm world_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  const double patience_ = patience();
};

}  // namespace
}  // namespace heed::dist

extern "C" {

HEED_API const char* heed_mpi_version() { return HEED_VERSION; }

HEED_API heed::dist::Communicator* heed_mpi_open(char* why, int room) {
  int given = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given) != MPI_SUCCESS) {
    std::snprintf(why, static_cast<size_t>(room), "MPI_Init_thread failed");
    return nullptr;
  }
  try {
    return new heed::dist::Mpi();
  } catch (const std::exception& error) {
    std::snprintf(why, static_cast<size_t>(room), "%s", error.what());
    return nullptr;
  }
}

}  // extern "C"
