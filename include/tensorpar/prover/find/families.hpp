// tensorpar/prover/find/families.hpp - the families of terms over which the shipped rules are searched
#pragma once
#include <tensorpar/prover/find/family.hpp>

namespace tensorpar::prover {

namespace detail {

/// Families one after another.
struct family_list {
  std::vector<family> all;
  void add(char const* name, char const* tensors, char const* parameters, std::string const& steps,
           int most = 3, int least = 3) {
    all.push_back(make_family(name, tensors, parameters, steps, most, least));
  }
};
inline std::string const family_few = "?f(_); add(_,_); scale{s}(_); ";
inline std::string const family_copies = "replicate{k}(_); reduce{k}(_); ";

/// Parallel operators, element-wise ones, concatenations, transpositions.
inline void add_element_families(family_list& list) {
  auto const& copies = family_copies;
  std::string const numbers = "?f(_); ?g(_); add(_,_); mul(_,_); scale{s}(_); scale{t}(_); ";
  list.add("spreads", "x:abc", "d=0,1,2 e=1,2,0 k m ?f",
      "?f(_); partition{d,k}(_); partition{d,m}(_); partition{e,m}(_); combine{d,k}(_); combine{d,m}(_); "
      "combine{e,m}(_); replicate{k}(_); "
      "replicate{m}(_); partition{d,k*m}(_); combine{d,k*m}(_); replicate{k*m}(_)");
  list.add("sums of spreads", "x:ab+", "d=0,1 k m s#",
      "reduce{k}(_); reduce{m}(_); reduce{k*m}(_); replicate{k}(_); replicate{m}(_); partition{d,k}(_); "
      "partition{d,m}(_); "
      "combine{d,k}(_); "
      "combine{d,m}(_); scale{s}(_)");
  list.add("element-wise", "x:abc y:abc z:abc", "d=0,1,2 e=1,2,0 k m s# t# ?f ?g",
      numbers +
          "partition{d,k}(_); partition{e,m}(_); combine{d,k}(_); combine{e,m}(_); replicate{k}(_); "
          "replicate{m}(_)");
  list.add("element-wise sums", "x:abc+ y:abc+ z:abc*", "d=0,1,2 k m s# t# ?f ?g",
      numbers + "partition{d,k}(_); combine{d,k}(_); replicate{m}(_); " + copies);
  list.add("element-wise counted sums", "x:abc@ y:abc@", "k",
           "mul(_,_); add(_,_); replicate{k}(_); reduce{k}(_)");
  list.add("concat", "x:AbC y:AbC z:AbC", "d=0,2,0 e=2,0,2 k s# ?f",
      "?f(_); add(_,_); mul(_,_); scale{s}(_); concat{d}(_,_); concat{e}(_,_); partition{1,k}(_); "
      "combine{1,k}(_); replicate{k}(_)");
  list.add("concat of spreads", "x:abC y:abC", "d=2,2,2 e=0,1,0 k",
      "concat{d}(_,_); partition{e,k}(_); combine{e,k}(_)");
  list.add("concat of four", "x:AB y:AB z:AB w:AB", "d=0,1,0 e=1,0,1",
      "add(_,_); mul(_,_); concat{d}(_,_); concat{e}(_,_)", 3, 3);
  list.add("concat, slices", "x:AC y:(BB)C", "d=0,0,0 ?f",
      "?f(_); concat{d}(_,_); slice{d,0,extent(x,d)}(_); slice{d,extent(x,d),extent(y,d)}(_)");
  list.add("concat, split", "x:(AA)bc y:(AA)bc", "d=0,0,0 e=1,2,1 k s# ?f",
      "split{2,d}(_); split{2,d}(_).1; concat{d}(_,_); ?f(_); add(_,_); scale{s}(_); partition{e,k}(_); "
      "combine{e,k}(_); replicate{k}(_)");
  list.add("concat of sums", "x:Ab+ y:Ab+", "k",
      "add(_,_); concat{0}(_,_); partition{1,k}(_); combine{1,k}(_); " + copies);
  list.add("transpose", "x:abc y:abc", "a=0,1,0 b=1,2,2 k s# ?f",
      "?f(_); add(_,_); mul(_,_); scale{s}(_); transpose{a,b}(_); partition{a,k}(_); partition{b,k}(_); "
      "combine{a,k}(_); combine{b,k}(_); "
      "replicate{k}(_)");
  list.add("transpose of others", "x:abc", "a=0,1,0 b=1,2,2 d=2,0,1 k",
      "transpose{a,b}(_); partition{d,k}(_); combine{d,k}(_)");
  list.add("transpose of concat", "x:ABC y:ABC", "a=0,1,0 b=1,2,2 d=2,0,1 ?f",
      "?f(_); transpose{a,b}(_); concat{a}(_,_); concat{b}(_,_); concat{d}(_,_)");
}
/// Linear operators and products of matrices.
inline void add_product_families(family_list& list) {
  auto const &few = family_few, &copies = family_copies;
  list.add("linear", "x:abi y:abi v:oi w:oi", "d=0,1 k s# ?f",
      "linear(_,_); " + few +
          "partition{d,k}(_); partition{-1,k}(_); partition{-2,k}(_); combine{d,k}(_); combine{-1,k}(_); "
          "combine{-2,k}(_); " +
          copies);
  list.add("linear of sums", "x:abi+ v:oi* w:oi*", "d=0,1 k m s#",
      "linear(_,_); add(_,_); scale{s}(_); partition{d,k}(_); combine{d,k}(_); replicate{k}(_); "
      "replicate{m}(_); reduce{k}(_)");
  list.add("linear of concat", "x:ABI y:ABI v:OI w:OI", "d=0,1 ?f",
      "linear(_,_); ?f(_); add(_,_); concat{d}(_,_); concat{-1}(_,_); concat{-2}(_,_)");
  list.add("linear of linear", "x:ai v:oi w:po", "k",
      "linear(_,_); matmul{0,0}(_,_); partition{-1,k}(_); partition{-2,k}(_); combine{-1,k}(_); "
      "combine{-2,k}(_); " +
          copies);
  std::string const matrix = "partition{-2,k}(_); partition{-1,k}(_); combine{-2,k}(_); combine{-1,k}(_); ";
  list.add("matmul", "a:mk b:kn c:kn", "k s# ?f",
      "matmul{0,0}(_,_); transpose{-2,-1}(_); " + few + matrix + copies);
  list.add("matmul of transposed", "a:mk b:nk c:km", "k",
      "matmul{0,0}(_,_); matmul{0,1}(_,_); matmul{1,0}(_,_); transpose{-2,-1}(_); " + matrix + copies);
  list.add("matmul, transposed", "c:km e:kn", "k", "matmul{1,0}(_,_); " + matrix + copies);
  list.add("matmul chain", "a:mk b:kn c:nq", "k s#", "matmul{0,0}(_,_); scale{s}(_); " + matrix + copies);
  list.add("matmul of concat", "a:MK b:KN c:KN e:MK", "?f",
      "matmul{0,0}(_,_); transpose{-2,-1}(_); ?f(_); add(_,_); concat{-2}(_,_); concat{-1}(_,_)");
  list.add("batched matmul", "a:hmk b:hkn c:hkn", "d=0,0 k s# ?f",
      "matmul{0,0}(_,_); transpose{-2,-1}(_); " + few + "partition{d,k}(_); combine{d,k}(_); " + matrix +
          copies);
  list.add("batched matmul of transposed", "a:hmk b:hnk c:hkm e:hkn", "d=0,0 k",
      "matmul{0,1}(_,_); matmul{1,0}(_,_); partition{d,k}(_); combine{d,k}(_); replicate{k}(_)");
}
/// Convolutions, pooling, embeddings.
inline void add_image_families(family_list& list) {
  auto const &few = family_few, &copies = family_copies;
  std::string const image = "conv2d{groups=1}(_,_); ";
  list.add("convolution", "x:ncHH y:ncHH v:ocRR w:ocRR", "stride#=1,2 pad#=1,0 pad_w#=-1,-1 k s# ?f",
      image + few + "partition{-4,k}(_); partition{-3,k}(_); combine{-4,k}(_); combine{-3,k}(_); " + copies);
  list.add("convolution of sums", "x:ncHH+ v:ocRR* w:ocRR*", "stride#=1,2 pad#=1,0 pad_w#=-1,-1 k m s#",
      image + "add(_,_); scale{s}(_); replicate{k}(_); replicate{m}(_); reduce{k}(_); partition{-4,k}(_)");
  list.add("convolution of concat", "x:NCHH y:NCHH v:OCRR w:OCRR", "stride#=1,2 pad#=1,0 pad_w#=-1,-1 ?f",
      image + "?f(_); add(_,_); concat{-4}(_,_); concat{-3}(_,_)");
  list.add("pooling", "x:ncHH y:ncHH", "stride#=1,2 pad#=1,0 kernel#=2,2 k s# ?f",
      "pool2d{average=0}(_); pool2d{average=1}(_); " + few +
          "partition{-4,k}(_); partition{-3,k}(_); combine{-4,k}(_); combine{-3,k}(_); replicate{k}(_)");
  list.add("pooling of sums and concat", "x:NCHH+ y:NCHH+", "stride#=1,2 pad#=1,0 kernel#=2,2 k s#",
      "pool2d{average=1}(_); add(_,_); scale{s}(_); concat{-4}(_,_); concat{-3}(_,_); " + copies);
  std::string const look_up = "embedding(_,_); embedding_bag(_,_); ";
  list.add("embedding", "x:ab# v:re w:re", "k s# ?f",
      look_up + few + "partition{-2,k}(_); partition{-1,k}(_); combine{-2,k}(_); combine{-1,k}(_); " +
          copies);
  list.add("embedding of concat", "x:AB# y:AB# v:RE w:RE", "?f",
      look_up + "?f(_); add(_,_); concat{-2}(_,_); concat{-1}(_,_)");
  list.add("embedding and sum", "x:ab# w:re", "", "embedding(_,_); embedding_bag(_,_); sum{-2}(_)");

}
/// Sums, heads, normalisations, attention, activated operators.
inline void add_sequence_families(family_list& list) {
  auto const& copies = family_copies;
  std::string const first = "partition{0,k}(_); combine{0,k}(_); ",
                    last = "partition{-1,k}(_); combine{-1,k}(_); ",
                    inner = "partition{-2,k}(_); combine{-2,k}(_); ",
                    any = "partition{d,k}(_); combine{d,k}(_); ";
  list.add("sum", "x:abc y:abc", "k s#",
      "sum{-1}(_); sum{-2}(_); add(_,_); scale{s}(_); " + first + inner + last + copies);
  list.add("sum of concat", "x:ABC y:ABC", "d=0,1,2", "sum{d}(_); concat{d}(_,_); add(_,_)");
  list.add("sum of two", "x:ABC y:ABC", "",
      "!sum{-2}(_); !concat{-2}(_,_); !split_axis{-1,extent(x,-1)}(_); !split_axis{-1,extent(y,-1)}(_); "
      "!add(_,_)",
      4, 1);
  list.add("heads", "x:ab(cc) y:abc(EEEE)", "d=0,1 inner#=2 k ?f",
      "split_axis{-1,inner}(_); merge_axes{-2}(_); split_axis{-1,extent(y,-1)}(_); ?f(_); replicate{k}(_); " +
          any + inner + last);
  list.add("softmax", "x:abC", "d=0,1 k", "softmax(_); replicate{k}(_); " + any);
  list.add("layer norm", "x:abC y:C z:C", "d=0,1 k eps#", "!layernorm(_,_,_); replicate{k}(_); " + any, 4, 2);
  list.add("attention", "x:aq(ee) y:aT(ee) z:aT(ee)", "heads#=2 causal#=0,1 k",
      "!attention(_,_,_); replicate{k}(_); partition{1,k}(_); combine{1,k}(_); " + first + last, 4, 2);
  list.add("attention, apart", "x:aq(ee) y:a(TT)(ee) z:a(TT)(ee)", "heads#=2 inner#=2",
      "!attention{heads,0}(_,_,_); !attention_parts{heads}(_,_,_); !attention_finish{heads}(_); "
      "split_axis{-2,inner}(_)",
      4, 1);
  std::string const outer = "partition{-3,k}(_); combine{-3,k}(_); ",
                    each = "!attention_parts{heads}(_,_,_); replicate{k}(_); ",
                    states = "softmax_merge{heads,parts}(_); softmax_merge{heads,more}(_); ";
  list.add("attention, parts", "x:aq(ee) y:apT(ee) z:apT(ee)", "heads#=2 k", each + outer + inner, 4, 2);
  list.add("attention, parts of heads", "x:aq(ee) y:apT(ee) z:apT(ee)", "heads#=2 k", each + first + last, 4,
           2);
  list.add("attention, states", "x:a(pppp)q(EEEE)", "heads#=2 parts#=2 more#=4 k",
      states + "replicate{k}(_); " + outer + first);
  list.add("attention, states of heads", "x:a(PPPP)q(eeee)", "heads#=2 parts#=2 more#=4 k",
      states + "attention_finish{heads}(_); replicate{k}(_); " + inner + last);
  list.add("attention, finish", "x:a(PPPP)Q(EEEE)", "heads#=2 parts#=2 more#=4 k",
      states + "attention_finish{heads}(_); replicate{k}(_); " + first);
  list.add("attention, sequence", "x:a(tt)E", "inner#=2 k", "split_axis{-2,inner}(_); " + inner + outer);
  list.add("linear, apart", "x:ABI y:AB(JJ) w:O(IJJ)", "",
      "linear(_,_); !concat{-1}(_,_); !add(_,_); !slice{-1,0,extent(x,-1)}(_); "
      "!slice{-1,extent(x,-1),extent(y,-1)}(_)",
      5, 2);
  list.add("activated linear", "x:abI w:oI b:o", "",
      "!linear(_,_); !linear(_,_,_); !relu(_); !sigmoid(_); !tanh(_); !linear_relu(_,_); "
      "!linear_relu(_,_,_); !linear_sigmoid(_,_); "
      "!linear_sigmoid(_,_,_); !linear_tanh(_,_); !linear_tanh(_,_,_)",
      2, 1);
  list.add("activated convolution", "x:nCHH w:oCRR b:o", "stride#=1,2 pad#=1,1 pad_w#=-1,-1",
      "!conv2d{groups=1}(_,_); !conv2d{groups=1}(_,_,_); !relu(_); !conv2d_relu{groups=1}(_,_); "
      "!conv2d_relu{groups=1}(_,_,_)",
      2, 1);
}

}  // namespace detail

/// Small families overlap in what joins them (functions, sums, shardings), so that every operator meets every
/// way of sharding it. Axes that operators cannot split while they work along them (a joined axis, an
/// image's height) are not split in a family of their own.
inline std::vector<family> standard_families() {
  detail::family_list list;
  detail::add_element_families(list);
  detail::add_product_families(list);
  detail::add_image_families(list);
  detail::add_sequence_families(list);
  return std::move(list.all);
}

}  // namespace tensorpar::prover
