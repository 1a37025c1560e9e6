// tensorpar/search/pipeline/stages/any_model.hpp - a stage model chosen at run time: the planners are
// compiled once for all of them
#pragma once
#include <memory>
#include <tensorpar/search/pipeline/stages/stage_model.hpp>
#include <utility>

namespace tensorpar::search {

/// Holds any stage model. Copies share it. A program that uses several models or several planners compiles
/// each planner once; asking through it costs a virtual call, some nanoseconds. Law: answers are the held
/// model's.
class any_stages {
  struct face {
    virtual ~face() = default;
    virtual int operators() const = 0;
    virtual int devices() const = 0;
    virtual std::vector<stage_tensor> const& tensors() const = 0;
    virtual std::vector<stage_choice> degrees() const = 0;
    virtual bool admits(stage_choice const&) const = 0;
    virtual int kind(int) const = 0;
    virtual stage_work work(int, stage_choice const&, int) const = 0;
    virtual stage_work transfer(stage_border const&, stage_choice const&, int) const = 0;
    virtual bool uniform() const = 0;
    virtual double capacity(int, int) const = 0;
    virtual i64 mini_batch() const = 0;
    virtual i64 own_batch() const = 0;
    virtual std::vector<std::vector<int>> const& sharers() const = 0;
    virtual stage_sharing sharing(std::vector<int> const&, std::vector<stage_place> const&) const = 0;
  };
  template <stage_model M> struct held final : face {
    M m;
    explicit held(M x) : m(std::move(x)) {}
    int operators() const override { return m.operators(); }
    int devices() const override { return m.devices(); }
    std::vector<stage_tensor> const& tensors() const override { return m.tensors(); }
    std::vector<stage_choice> degrees() const override { return m.degrees(); }
    bool admits(stage_choice const& c) const override { return m.admits(c); }
    int kind(int v) const override { return m.kind(v); }
    stage_work work(int v, stage_choice const& c, int first) const override { return m.work(v, c, first); }
    stage_work transfer(stage_border const& b, stage_choice const& c, int first) const override {
      return m.transfer(b, c, first);
    }
    bool uniform() const override { return m.uniform(); }
    double capacity(int first, int n) const override { return m.capacity(first, n); }
    i64 mini_batch() const override { return m.mini_batch(); }
    i64 own_batch() const override { return m.own_batch(); }
    std::vector<std::vector<int>> const& sharers() const override { return detail::sharers_of(m); }
    stage_sharing sharing(std::vector<int> const& of, std::vector<stage_place> const& places) const override {
      return detail::sharing_of(m, of, places);
    }
  };
  std::shared_ptr<face const> m_;

 public:
  template <stage_model M>
    requires(!std::same_as<M, any_stages>)
  explicit any_stages(M m) : m_(std::make_shared<held<M>>(std::move(m))) {}

  int operators() const { return m_->operators(); }
  int devices() const { return m_->devices(); }
  std::vector<stage_tensor> const& tensors() const { return m_->tensors(); }
  std::vector<stage_choice> degrees() const { return m_->degrees(); }
  bool admits(stage_choice const& c) const { return m_->admits(c); }
  int kind(int v) const { return m_->kind(v); }
  stage_work work(int v, stage_choice const& c, int first) const { return m_->work(v, c, first); }
  stage_work transfer(stage_border const& b, stage_choice const& c, int first) const {
    return m_->transfer(b, c, first);
  }
  bool uniform() const { return m_->uniform(); }
  double capacity(int first, int n) const { return m_->capacity(first, n); }
  i64 mini_batch() const { return m_->mini_batch(); }
  i64 own_batch() const { return m_->own_batch(); }
  std::vector<std::vector<int>> const& sharers() const { return m_->sharers(); }
  stage_sharing sharing(std::vector<int> const& of, std::vector<stage_place> const& places) const {
    return m_->sharing(of, places);
  }
};

}  // namespace tensorpar::search
