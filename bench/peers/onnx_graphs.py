# SPDX-License-Identifier: Apache-2.0
"""Graphs for ONNX Runtime, with the weights of PyTorch modules, and sessions that run them without copies."""
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

OPSET = 23  # the first with Attention


def array(tensor):
    return np.ascontiguousarray(tensor.detach().numpy())


class Graph:
    """Nodes in the order in which they are added; inputs and initializers by name."""

    def __init__(self):
        self.nodes, self.inputs, self.initializers = [], {}, []

    def input(self, name, values):
        self.inputs[name] = np.ascontiguousarray(values)
        return name

    def constant(self, name, values):
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def node(self, operator, inputs, outputs=1, domain="", **attributes):
        names = [f"{operator}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(operator, inputs, names, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def linear(self, x, weight, bias, name):
        """x W^T + b, with W [out,in] as PyTorch has it."""
        product = self.node("MatMul", [x, self.constant(name + ".weight", array(weight.T))])
        return self.node("Add", [product, self.constant(name + ".bias", array(bias))])

    def norm(self, x, norm, name):
        scale, bias = self.constant(name + ".weight", array(norm.weight)), self.constant(name + ".bias", array(norm.bias))
        return self.node("LayerNormalization", [x, scale, bias], axis=-1, epsilon=norm.eps)

    def session(self, output, shape, threads):
        declared = [helper.make_tensor_value_info(n, TensorProto.FLOAT, v.shape) for n, v in self.inputs.items()]
        result = helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)
        graph = helper.make_graph(self.nodes, "heed_peer", declared, [result], self.initializers)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        onnx.checker.check_model(model)
        return Session(model, self.inputs, output, shape, threads)


class Session:
    """run() computes; output is what it computed."""

    def __init__(self, model, inputs, output, shape, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        self.session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        self.inputs = inputs  # bound without a copy
        self.output = np.empty(shape, np.float32)
        self.binding = self.session.io_binding()
        for name, values in inputs.items():
            self.binding.bind_input(name, "cpu", 0, values.dtype, values.shape, values.ctypes.data)
        self.binding.bind_output(output, "cpu", 0, np.float32, shape, self.output.ctypes.data)

    def run(self):
        self.session.run_with_iobinding(self.binding)


def attention(q, k, v, causal, threads):
    """The operator of the standard: [B,H,T,D] all through."""
    graph = Graph()
    names = [graph.input(name, values) for name, values in (("q", q), ("k", k), ("v", v))]
    return graph.session(graph.node("Attention", names, is_causal=int(causal)), q.shape, threads)


def multi_head_attention(q, k, v, causal, threads):
    """ONNX Runtime's own operator, which takes and gives [B,T,H D]."""
    graph = Graph()
    B, H, T, D = q.shape

    def merged(x):
        return x.transpose(0, 2, 1, 3).reshape(B, -1, H * D)

    names = [graph.input(name, merged(values)) for name, values in (("q", q), ("k", k), ("v", v))]
    out = graph.node("MultiHeadAttention", names, domain="com.microsoft", num_heads=H, unidirectional=int(causal))
    return graph.session(out, (B, T, H * D), threads)


def encoder_layer(layer, x, threads, own_operator):
    """nn.TransformerEncoderLayer with norms after, in inference."""
    graph = Graph()
    attention = layer.self_attn
    heads = attention.num_heads
    h = graph.input("x", array(x))
    q, k, v = (
        graph.linear(h, weight, bias, name)
        for name, weight, bias in zip("qkv", attention.in_proj_weight.chunk(3), attention.in_proj_bias.chunk(3))
    )
    if own_operator:
        seen = graph.node("MultiHeadAttention", [q, k, v], domain="com.microsoft", num_heads=heads)
    else:
        seen = graph.node("Attention", [q, k, v], q_num_heads=heads, kv_num_heads=heads)
    seen = graph.linear(seen, attention.out_proj.weight, attention.out_proj.bias, "out")
    h = graph.norm(graph.node("Add", [h, seen]), layer.norm1, "norm1")
    inner = graph.node("Relu", [graph.linear(h, layer.linear1.weight, layer.linear1.bias, "linear1")])
    inner = graph.linear(inner, layer.linear2.weight, layer.linear2.bias, "linear2")
    h = graph.norm(graph.node("Add", [h, inner]), layer.norm2, "norm2")
    return graph.session(h, tuple(x.shape), threads)


# Where ONNX has PyTorch's gates: i o f c of i f g o; z r h of r z n.
GATES = {"LSTM": [0, 3, 1, 2], "GRU": [1, 0, 2]}


def recurrent(layer, x, threads):
    """nn.LSTM or nn.GRU of one layer; the output is [T,1,B,H], x [B,T,I] goes in as [T,B,I]."""
    operator = layer.mode
    order, H = GATES[operator], layer.hidden_size

    def gates(values):
        return np.concatenate([array(values.chunk(len(order))[i]) for i in order])[None]

    graph = Graph()
    names = [
        graph.input("x", array(x.transpose(0, 1))),
        graph.constant("w", gates(layer.weight_ih_l0)),
        graph.constant("r", gates(layer.weight_hh_l0)),
        graph.constant("b", np.concatenate([gates(layer.bias_ih_l0), gates(layer.bias_hh_l0)], axis=1)),
    ]
    own = {"linear_before_reset": 1} if operator == "GRU" else {}
    out = graph.node(operator, names, hidden_size=H, **own)
    return graph.session(out, (x.shape[1], 1, x.shape[0], H), threads)
