// SPDX-License-Identifier: Apache-2.0
#pragma once
// The one place where ops choose between a kernel in f32 and its twin in f64. Internal to ops.
//
//   constexpr Kernel kAdd{kernels::add_forward, kernels::reference::add_forward};
//   kAdd(context, a, b, y);  // each tensor becomes the view that the chosen kernel takes
//
// Arguments that are typed already, such as structs of views, choose at compile time; with_float gives the type:
//
//   with_float("conv1d", y.dtype(), [&]<class T>(T) { kConv1d(context, call.inputs<T>(), y); });
#include <concepts>
#include <type_traits>

#include "heed/autograd/tape.h"
#include "heed/base/view.h"
#include "heed/tensor/convert.h"
#include "heed/tensor/tensor.h"

namespace heed::ops {

// A tensor as an argument of a kernel: converts to the view that the parameter is.
struct TensorArgument {
  const Tensor& tensor;

  template <class T, size_t Rank>
  operator View<T, Rank>() const {  // NOLINT(google-explicit-constructor): that is what it is for
    return tensor.view<T, Rank>();
  }
  operator const Tensor&() const { return tensor; }  // NOLINT(google-explicit-constructor)
};

inline TensorArgument kernel_argument(const Tensor& x) { return {x}; }
inline TensorArgument kernel_argument(const Var& x) { return {x.value()}; }
template <class T>
const T& kernel_argument(const T& x) {
  return x;  // NOLINT(bugprone-return-const-ref-from-parameter): for the length of a call
}

inline Parallel& parallel_of(const Context& context) { return context.parallel; }
inline Parallel& parallel_of(const Backward& backward) { return backward.parallel(); }
inline Workspace& workspace_of(const Context& context) { return context.workspace; }
inline Workspace& workspace_of(const Backward& backward) { return backward.workspace(); }

// No context, for kernels that need neither threads nor workspace; no scratch.
struct None {};

// A kernel in f32 and its twin in f64, called alike. The first argument of a call is the Context of a forward pass, or
// the Backward of a record; what a kernel has parameters for comes from it, after the other arguments: the context
// itself, Workspace& and Parallel&, Parallel&, or nothing. `scratch` gives the bytes of workspace that the f32 kernel
// needs for its first argument, or for all of them; they are reserved before the call.
template <class F32, class F64, class Scratch = None>
class Kernel {
 public:
  constexpr Kernel(F32 f32, F64 f64, Scratch scratch = {}) : f32_(f32), f64_(f64), scratch_(scratch) {}

  template <class On, class... Arguments>
  decltype(auto) operator()(const On& on, const Arguments&... arguments) const {
    return choose(dtype_of(arguments...), on, kernel_argument(arguments)...);
  }

 private:
  template <class F, class... Arguments>
  static constexpr bool kInvocable = std::is_invocable_v<const F&, const Arguments&...>;
  template <class F, class On, class... Arguments>
  static constexpr bool kTakes =
      kInvocable<F, Arguments..., On> || std::is_invocable_v<const F&, const Arguments&..., Workspace&, Parallel&> ||
      std::is_invocable_v<const F&, const Arguments&..., Parallel&> || kInvocable<F, Arguments...>;

  // That of the tensors with numbers in them: the op has checked that they agree. Ids and what is not there say
  // nothing.
  template <class... Arguments>
  static DType dtype_of(const Arguments&... arguments) {
    DType dtype = DType::f32;
    const auto look = [&](const auto& argument) {
      if constexpr (requires {
                      { argument.dtype() } -> std::same_as<DType>;
                    }) {
        if (argument && is_floating(argument.dtype())) dtype = argument.dtype();
      }
    };
    (look(arguments), ...);
    return dtype;
  }

  template <class On, class... Arguments>
  decltype(auto) choose(DType dtype, const On& on, const Arguments&... arguments) const {
    constexpr bool in_f32 = kTakes<F32, On, Arguments...>, in_f64 = kTakes<F64, On, Arguments...>;
    static_assert(in_f32 || in_f64, "neither the f32 kernel nor its f64 twin takes these arguments");
    if constexpr (in_f32 && in_f64) {
      return dtype == DType::f64 ? call(f64_, on, arguments...) : call_f32(on, arguments...);
    } else if constexpr (in_f64) {
      return call(f64_, on, arguments...);
    } else {
      return call_f32(on, arguments...);
    }
  }

  template <class On, class First, class... Others>
  decltype(auto) call_f32(const On& on, const First& first, const Others&... others) const {
    if constexpr (kInvocable<Scratch, First>) {
      workspace_of(on).reserve(scratch_(first));
    } else if constexpr (kInvocable<Scratch, First, Others...>) {
      workspace_of(on).reserve(scratch_(first, others...));
    } else {
      static_assert(std::is_same_v<Scratch, None>, "scratch takes neither the first argument nor all of them");
    }
    return call(f32_, on, first, others...);
  }

  template <class F, class On, class... Arguments>
  static decltype(auto) call(const F& f, const On& on, const Arguments&... arguments) {
    if constexpr (kInvocable<F, Arguments..., On>) {
      return f(arguments..., on);
    } else if constexpr (std::is_invocable_v<const F&, const Arguments&..., Workspace&, Parallel&>) {
      return f(arguments..., workspace_of(on), parallel_of(on));
    } else if constexpr (std::is_invocable_v<const F&, const Arguments&..., Parallel&>) {
      return f(arguments..., parallel_of(on));
    } else {
      return f(arguments...);
    }
  }

  F32 f32_;
  F64 f64_;
  Scratch scratch_;
};

}  // namespace heed::ops
