import pytest

from runner.graph.terms import snake_case


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("RMSNorm", "rms_norm"),
        ("LlamaRMSNorm", "llama_rms_norm"),
        ("NewGELU", "new_gelu"),
        ("LayerNorm", "layer_norm"),
        ("SwiGLU", "swiglu"),
        ("GEGLU", "geglu"),
        ("RoPE", "rope"),
        ("SiLUGate", "silu_gate"),
        ("MLP", "mlp"),
        ("L2Norm", "l2_norm"),
        ("BatchNorm2d", "batch_norm2d"),
        ("ResidualScale", "residual_scale"),
        ("TransformerBlock", "transformer_block"),
        ("44_MiniGPTBlock"[3:], "mini_gpt_block"),
        ("ResNet101", "resnet101"),
        ("GATv2Conv", "gatv2_conv"),
        ("DCNv2", "dcnv2"),
        ("BiFPN", "bifpn"),
        ("SE3Conv", "se3_conv"),
        ("S4DKernel", "s4d_kernel"),
        ("E2EModel", "e2e_model"),
        ("U2Net", "u2net"),
        ("Res2NetBlock", "res2net_block"),
        ("WaveNetLayer", "wavenet_layer"),
        ("HRNet", "hrnet"),
        ("MBConv", "mbconv"),
        ("UNet2DModel", "unet2d_model"),
        ("DiTBlock", "dit_block"),
        ("mLSTMBlock", "mlstm_block"),
        ("ConvNeXtV2Block", "convnext_v2_block"),
        ("SwiGLUFFN", "swiglu_ffn"),
        ("Conv2dNormActivation", "conv2d_norm_activation"),
        ("NetworkBlock", "network_block"),
        ("DenseNet121TransitionLayer", "densenet121_transition_layer"),
    ],
)
def test_class_names_are_said_as_the_field_says_them(name: str, said: str) -> None:
    assert snake_case(name) == said
