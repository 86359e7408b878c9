// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupts.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace heed::cli {
namespace {

constexpr std::array kStopping{SIGINT, SIGTERM, SIGHUP};
constexpr std::array kIgnored{SIGPIPE, SIGXFSZ};

Cancel stopping;
volatile sig_atomic_t came = 0, saves = 0;
std::array<struct sigaction, kStopping.size() + kIgnored.size()> earlier{};

// Only calls that a handler may make.
void handle(int signal) {
  if (saves == 0) ::_exit(128 + signal);
  if (came != 0) {
    ::signal(signal, SIG_DFL);
    ::raise(signal);  // comes when this handler returns
    return;
  }
  came = signal;
  stopping.request();
}

void set(int signal, void (*handler)(int), struct sigaction& before) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(signal, nullptr, &before);
  if (before.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);
}

}  // namespace

Interrupts::Interrupts() {
  size_t place = 0;
  for (const int signal : kStopping) set(signal, handle, earlier[place++]);
  for (const int signal : kIgnored) set(signal, SIG_IGN, earlier[place++]);
}

Interrupts::~Interrupts() {
  size_t place = 0;
  for (const int signal : kStopping) ::sigaction(signal, &earlier[place++], nullptr);
  for (const int signal : kIgnored) ::sigaction(signal, &earlier[place++], nullptr);
}

void Interrupts::can_save() { saves = 1; }

void Interrupts::request(int signal) {
  if (saves == 0) throw Interrupted{signal};
  if (came == 0) came = signal;
  stopping.request();
}

const Cancel* Interrupts::cancel() const { return &stopping; }
int Interrupts::signal() const { return came; }

}  // namespace heed::cli
