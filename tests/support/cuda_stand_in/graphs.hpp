// tests/support/cuda_stand_in/graphs.hpp - calls about streams, events, and captures of both, with the rules that a driver has for them
#pragma once
#include "calls.hpp"

// --- streams
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned flags) {
  return cuda_stand_in::called("cudaStreamCreateWithFlags", cuda_stand_in::kind::plain, [&] {
    using namespace cuda_stand_in;
    auto q = std::make_shared<queue>(queue{current_gpu, !(flags & cudaStreamNonBlocking), {}, nullptr, nullptr, {}});
    scheduler::get().queues.push_back(q);
    known_streams().insert(*s = new CUstream_st{std::move(q)});
    ++the_machine::get().streams;
    return cudaSuccess;
  });
}
inline cudaError_t cudaStreamCreate(cudaStream_t* s) { return cudaStreamCreateWithFlags(s, cudaStreamDefault); }
/// Returns at once; what the stream was asked for is done all the same.
inline cudaError_t cudaStreamDestroy(cudaStream_t s) {
  return cuda_stand_in::called("cudaStreamDestroy", cuda_stand_in::kind::gives_back, [&] {
    using namespace cuda_stand_in;
    if (!known_streams().erase(s)) return cudaErrorInvalidResourceHandle;
    if (s->q->writes) scheduler::get().end(*std::shared_ptr<capture>(s->q->writes));
    delete s;
    --the_machine::get().streams;
    scheduler::get().forget_idle();
    return cudaSuccess;
  });
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  return cuda_stand_in::called("cudaStreamSynchronize", cuda_stand_in::kind::unsafe, [&] {
    cuda_stand_in::queue* const q = cuda_stand_in::queue_of(s);
    if (!q) return cudaErrorInvalidResourceHandle;
    if (q->writes) {
      q->writes->invalid = true;
      return cudaErrorStreamCaptureUnsupported;
    }
    cuda_stand_in::scheduler::get().wait_for(q->last);
    return cuda_stand_in::the_machine::get().state(q->gpu);
  });
}
inline cudaError_t cudaStreamQuery(cudaStream_t s) {
  return cuda_stand_in::called("cudaStreamQuery", cuda_stand_in::kind::unsafe, [&] {
    cuda_stand_in::queue* const q = cuda_stand_in::queue_of(s);
    if (!q) return cudaErrorInvalidResourceHandle;
    if (q->writes) {
      q->writes->invalid = true;
      return cudaErrorStreamCaptureUnsupported;
    }
    if (!q->last || q->last->done) {
      cuda_stand_in::scheduler::get().wait_for(q->last);
      return cuda_stand_in::the_machine::get().state(q->gpu);
    }
    cuda_stand_in::scheduler::get().step(q->last);
    return cudaErrorNotReady;
  });
}

// --- events
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned flags) {
  return cuda_stand_in::called("cudaEventCreateWithFlags", cuda_stand_in::kind::plain, [&] {
    cuda_stand_in::known_events().insert(*e = new CUevent_st{cuda_stand_in::current_gpu, flags, nullptr, nullptr, {}});
    ++cuda_stand_in::the_machine::get().events;
    return cudaSuccess;
  });
}
inline cudaError_t cudaEventCreate(cudaEvent_t* e) { return cudaEventCreateWithFlags(e, cudaEventDefault); }
inline cudaError_t cudaEventDestroy(cudaEvent_t e) {
  return cuda_stand_in::called("cudaEventDestroy", cuda_stand_in::kind::gives_back, [&] {
    if (!cuda_stand_in::known_events().erase(e)) return cudaErrorInvalidResourceHandle;
    delete e;
    --cuda_stand_in::the_machine::get().events;
    return cudaSuccess;
  });
}
inline cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s = nullptr) {
  return cuda_stand_in::called("cudaEventRecord", cuda_stand_in::kind::plain, [&]() -> cudaError_t {
    cuda_stand_in::queue* const q = cuda_stand_in::queue_of(s);
    if (!q || !cuda_stand_in::known(e) || e->gpu != q->gpu) return cudaErrorInvalidResourceHandle;
    if (q->writes) {
      if (q->writes->invalid) return cudaErrorStreamCaptureInvalidated;
      e->written = q->writes;
      e->tips = q->tips;
      return cudaSuccess;
    }
    e->written = nullptr;
    cudaError_t const status = cuda_stand_in::scheduler::get().ask(*q, nullptr);
    if (status == cudaSuccess) e->at = q->last;
    return status;
  });
}
inline cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned = 0) {
  return cuda_stand_in::called("cudaStreamWaitEvent", cuda_stand_in::kind::plain, [&]() -> cudaError_t {
    cuda_stand_in::queue* const q = cuda_stand_in::queue_of(s);
    if (!q || !cuda_stand_in::known(e)) return cudaErrorInvalidResourceHandle;
    if (e->written) {
      if (e->written->ended) return cudaErrorCapturedEvent;
      if (e->written->invalid) return cudaErrorStreamCaptureInvalidated;
      if (q->writes && q->writes != e->written) {
        q->writes->invalid = e->written->invalid = true;
        return cudaErrorStreamCaptureMerge;
      }
      if (q == &cuda_stand_in::scheduler::get().default_of(q->gpu)) {
        e->written->invalid = true;
        return cudaErrorStreamCaptureImplicit;
      }
      q->writes = e->written;
      q->tips.insert(e->tips.begin(), e->tips.end());
      return cudaSuccess;
    }
    if (q->writes) {
      q->writes->invalid = true;
      return cudaErrorStreamCaptureIsolation;
    }
    if (!e->at) return cudaSuccess;
    return cuda_stand_in::scheduler::get().ask(*q, nullptr, {e->at});
  });
}

namespace cuda_stand_in {
/// Events that a capture wrote stand for nothing that is ever done.
inline cudaError_t refuse_captured(cudaEvent_t e) {
  if (!known(e)) return cudaErrorInvalidResourceHandle;
  if (!e->written) return cudaSuccess;
  e->written->invalid = true;
  return cudaErrorCapturedEvent;
}
}  // namespace cuda_stand_in

/// Whoever asks again and again is answered in the end: each time a little more is done.
inline cudaError_t cudaEventQuery(cudaEvent_t e) {
  return cuda_stand_in::called("cudaEventQuery", cuda_stand_in::kind::unsafe, [&] {
    if (cudaError_t const s = cuda_stand_in::refuse_captured(e); s != cudaSuccess) return s;
    if (!e->at || e->at->done) {
      cuda_stand_in::scheduler::get().wait_for(e->at);
      return cuda_stand_in::the_machine::get().state(e->gpu);
    }
    cuda_stand_in::scheduler::get().step(e->at);
    return cudaErrorNotReady;
  });
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  return cuda_stand_in::called("cudaEventSynchronize", cuda_stand_in::kind::unsafe, [&] {
    if (cudaError_t const s = cuda_stand_in::refuse_captured(e); s != cudaSuccess) return s;
    cuda_stand_in::scheduler::get().wait_for(e->at);
    return cuda_stand_in::the_machine::get().state(e->gpu);
  });
}
/// By a clock that ticks once for everything that is done.
inline cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to) {
  return cuda_stand_in::called("cudaEventElapsedTime", cuda_stand_in::kind::plain, [&] {
    for (cudaEvent_t e : {from, to}) {
      if (cudaError_t const s = cuda_stand_in::refuse_captured(e); s != cudaSuccess) return s;
      if (!e->at || (e->flags & cudaEventDisableTiming) || e->gpu != from->gpu) return cudaErrorInvalidResourceHandle;
    }
    if (!from->at->done || !to->at->done) return cudaErrorNotReady;
    *ms = static_cast<float>((static_cast<double>(to->at->time) - static_cast<double>(from->at->time)) * 1e-6);
    return cudaSuccess;
  });
}

// --- captures and graphs
inline cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode) {
  return cuda_stand_in::called("cudaStreamBeginCapture", cuda_stand_in::kind::plain, [&] {
    cuda_stand_in::queue* const q = cuda_stand_in::queue_of(s);
    if (!q) return cudaErrorInvalidResourceHandle;
    if (!s) return cudaErrorStreamCaptureUnsupported;
    if (q->writes) return cudaErrorInvalidValue;
    cuda_stand_in::scheduler::get().begin(*q, mode);
    return cudaSuccess;
  });
}
inline cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus* is) {
  return cuda_stand_in::called("cudaStreamIsCapturing", cuda_stand_in::kind::plain, [&] {
    cuda_stand_in::queue* const q = cuda_stand_in::queue_of(s);
    if (!q) return cudaErrorInvalidResourceHandle;
    *is = !q->writes ? cudaStreamCaptureStatusNone
                     : q->writes->invalid ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
    return cudaSuccess;
  });
}
inline cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t* g) {
  *g = nullptr;
  return cuda_stand_in::called("cudaStreamEndCapture", cuda_stand_in::kind::plain, [&] {
    using namespace cuda_stand_in;
    queue* const q = queue_of(s);
    if (!q) return cudaErrorInvalidResourceHandle;
    std::shared_ptr<capture> const c = q->writes;
    if (!c) return cudaErrorInvalidValue;
    if (c->origin != q) {
      c->invalid = true;
      return cudaErrorStreamCaptureUnmatched;
    }
    if (c->mode != cudaStreamCaptureModeRelaxed && c->thread != std::this_thread::get_id()) return cudaErrorStreamCaptureWrongThread;
    std::set<std::size_t> joined(q->tips.begin(), q->tips.end());
    for (std::size_t k = c->nodes.size(); k-- > 0;)
      if (joined.count(k)) joined.insert(c->nodes[k].after.begin(), c->nodes[k].after.end());
    scheduler::get().end(*c);
    if (c->invalid) return cudaErrorStreamCaptureInvalidated;
    if (joined.size() < c->nodes.size()) return cudaErrorStreamCaptureUnjoined;
    *g = new CUgraph_st{std::move(c->nodes)};
    ++the_machine::get().graphs;
    return cudaSuccess;
  });
}
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* x, cudaGraph_t g, unsigned long long = 0) {
  *x = nullptr;
  return cuda_stand_in::called("cudaGraphInstantiate", cuda_stand_in::kind::plain, [&] {
    using namespace cuda_stand_in;
    if (!g) return cudaErrorInvalidValue;
    *x = new CUgraphExec_st{current_gpu, std::make_shared<chained_nodes>(g->nodes, order_of(g->nodes, the_machine::get().when))};
    ++the_machine::get().executables;
    return cudaSuccess;
  });
}
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t x, cudaStream_t s) {
  return cuda_stand_in::called("cudaGraphLaunch", cuda_stand_in::kind::plain, [&]() -> cudaError_t {
    cuda_stand_in::queue* const q = cuda_stand_in::queue_of(s);
    if (!q || !x) return cudaErrorInvalidResourceHandle;
    if (q->writes) return cudaErrorNotSupported;           // a graph within a graph: the stand-in has none
    return cuda_stand_in::scheduler::get().replay(*q, x->nodes);
  });
}
inline cudaError_t cudaGraphDestroy(cudaGraph_t g) {
  return cuda_stand_in::called("cudaGraphDestroy", cuda_stand_in::kind::gives_back, [&] {
    if (!g) return cudaErrorInvalidValue;
    delete g;
    --cuda_stand_in::the_machine::get().graphs;
    return cudaSuccess;
  });
}
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t x) {
  return cuda_stand_in::called("cudaGraphExecDestroy", cuda_stand_in::kind::gives_back, [&] {
    if (!x) return cudaErrorInvalidValue;
    delete x;
    --cuda_stand_in::the_machine::get().executables;
    return cudaSuccess;
  });
}
