// tensorpar/exec/nccl/nccl.cuh - the door to NCCL: the communicator whose ranks are GPUs
#pragma once
#include <cstdlib>
#include <nccl.h>
#include <tensorpar/exec/cuda/cuda.cuh>
#include <tensorpar/exec/nccl/endpoint.hpp>
#include <vector>

namespace tensorpar {

/// NCCL, 2.18 or newer. Models `collective_library` for cuda_memory and, where nccl.h has the calls (2.28.9
/// does), `shrinking_library`. Communicators are non-blocking: no call of NCCL waits for other ranks (the
/// first collective of a group connects it, and is in progress until all have come to it).
struct nccl_library {
  using comm = ncclComm_t;
  using id = ncclUniqueId;
  using status = ncclResult_t;
  using element = ncclDataType_t;
  static constexpr status ok = ncclSuccess, in_progress = ncclInProgress;
  static constexpr element bytes = ncclInt8;
  static std::string words(status s) { return ncclGetErrorString(s); }
  template <class E> static std::optional<element> code_of() {
    if constexpr (std::same_as<E, float>) return ncclFloat32;
    else if constexpr (std::same_as<E, double>) return ncclFloat64;
    else if constexpr (std::same_as<E, std::int32_t>) return ncclInt32;
    else if constexpr (std::same_as<E, bfloat16>) return ncclBfloat16;
    else return {};
  }
  static status make_id(id& i) { return ncclGetUniqueId(&i); }
  /// NCCL reads the place from NCCL_COMM_ID, which is set for it unless it is set already.
  static status make_id_at(id& i, std::string const& address, int port) {
    setenv("NCCL_COMM_ID", place_of(address, port).c_str(), 0);
    return ncclGetUniqueId(&i);
  }
  static status init(comm& c, int ranks, id const& i, int rank) {
    ncclConfig_t config = non_blocking();
    return ncclCommInitRankConfig(&c, ranks, i, rank, &config);
  }
  /// A send that waits for its receive occupies multiprocessors: channels of messages take few.
  static status split(comm const& parent, int color, int key, bool message, comm& child) {
    ncclConfig_t config = non_blocking();
    if (message) config.maxCTAs = 4;
    return ncclCommSplit(parent, color < 0 ? NCCL_SPLIT_NOCOLOR : color, key, &child, &config);
  }
  static status state(comm const& c, status& s) { return ncclCommGetAsyncError(c, &s); }
  static status finalize(comm const& c) { return ncclCommFinalize(c); }
  static status destroy(comm const& c) { return ncclCommDestroy(c); }
  static status abort(comm const& c) { return ncclCommAbort(c); }
#if defined(NCCL_REVOKE_DEFAULT) && defined(NCCL_SHRINK_DEFAULT)
  static status revoke(comm const& c) { return ncclCommRevoke(c, NCCL_REVOKE_DEFAULT); }
  /// What was revoked has nothing that a shrink would have to abort.
  static status shrink(comm const& parent, int const* lost, int count, comm& child) {
    std::vector<int> list(lost, lost + count);             // NCCL sorts it in place
    ncclConfig_t config = non_blocking();
    return ncclCommShrink(parent, list.data(), count, &child, &config, NCCL_SHRINK_DEFAULT);
  }
#endif

  static status all_reduce(void const* in, void* out, std::size_t n, element t, comm const& c,
                           cuda_memory const& q) {
    return ncclAllReduce(in, out, n, t, ncclSum, c, q.stream());
  }
  static status reduce_scatter(void const* in, void* out, std::size_t n, element t, comm const& c,
                               cuda_memory const& q) {
    return ncclReduceScatter(in, out, n, t, ncclSum, c, q.stream());
  }
  static status all_gather(void const* in, void* out, std::size_t n, element t, comm const& c,
                           cuda_memory const& q) {
    return ncclAllGather(in, out, n, t, c, q.stream());
  }
  static status broadcast(void const* in, void* out, std::size_t n, element t, int root, comm const& c,
                          cuda_memory const& q) {
    return ncclBroadcast(in, out, n, t, root, c, q.stream());
  }
  static status send(void const* p, std::size_t n, element t, int peer, comm const& c, cuda_memory const& q) {
    return ncclSend(p, n, t, peer, c, q.stream());
  }
  static status receive(void* p, std::size_t n, element t, int peer, comm const& c, cuda_memory const& q) {
    return ncclRecv(p, n, t, peer, c, q.stream());
  }
  static status group_start() { return ncclGroupStart(); }
  static status group_end() { return ncclGroupEnd(); }

 private:
  static ncclConfig_t non_blocking() {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    return config;
  }
};

namespace comm {
/// One GPU's endpoint: see basic_nccl. All GPUs of one process, or one GPU in each of several that a launcher
/// has started (exec/comm/launch.hpp) or MPI has (exec/nccl/by_mpi.hpp). Sums of float and double are NCCL's:
/// the same bits on every member, in an order of NCCL's own.
using nccl = basic_nccl<nccl_library, cuda_memory>;
}  // namespace comm

}  // namespace tensorpar
