// tensorpar/exec/step/task_errors.hpp - errors of a step, with the tasks that devices were at
#pragma once
#include <exception>
#include <new>
#include <string>
#include <tensorpar/core/error.hpp>
#include <tensorpar/program/core/program.hpp>
#include <vector>

namespace tensorpar::exec::detail {

/// One of a device's workers, and the task it was at; as many as there are tasks: at the end.
struct worker_place {
  int device = 0;
  std::size_t task = 0;
};
inline std::string told_place(program const& q, worker_place at, std::string where) {
  where.append(where.empty() ? "device " : ", device ").append(std::to_string(at.device)).append(" in task ");
  return where.append(std::to_string(at.task)).append(" (").append(q.tasks[at.task].name).append(")");
}

/// The exception that is being handled as an `error` with the task of the device that it stops: other
/// processes know neither, and hear of exceptions of other types their words alone. Where memory is short, or
/// without words: itself.
inline std::exception_ptr with_task(program const& q, worker_place at) {
  bool const known = at.task < q.tasks.size();
  try {
    throw;
  } catch (error const& e) {
    return known ? std::make_exception_ptr(error(e.problem(), told_place(q, at, e.where()), e.valid()))
                 : std::current_exception();
  } catch (std::bad_alloc const&) {
    return std::current_exception();
  } catch (std::exception const& e) {
    return known ? std::make_exception_ptr(error(e.what(), told_place(q, at, {}), {}))
                 : std::current_exception();
  } catch (...) {
    return std::current_exception();
  }
}

/// Throws the first failure, with the tasks that devices were at: first the one that failed (-1: unknown),
/// then some of those that had not come to the end.
[[noreturn]] inline void rethrow_with_tasks(program const& q, std::exception_ptr failure, int first,
                                            std::vector<worker_place> const& at) {
  try {
    std::rethrow_exception(failure);
  } catch (error const& e) {
    int told = 0;
    std::string where = e.where();
    bool const told_first = where.find(" in task ") != where.npos;         // by `with_task`
    for (bool now : {true, false})
      for (worker_place const& w : at)
        if (w.task < q.tasks.size() && (w.device == first) == now && !(now && told_first) && ++told <= 8)
          where = told_place(q, w, where);
    throw error(e.problem(), where, e.valid());
  }
}

}  // namespace tensorpar::exec::detail
