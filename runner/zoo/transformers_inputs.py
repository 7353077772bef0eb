"""Inputs of forward() for classes of transformers that the rules of their parameters do not fit."""

from collections.abc import Mapping, Sequence

INPUTS: Mapping[str, str | Sequence[tuple[str | None, str]]] = {
    "AudioFlamingo3Encoder": (
        "input_features=float32[1,128,3000], input_features_mask=int64[1,3000]=1"
    ),
    "BrosModel": (
        ("input_ids", "torch.randint(30522, (1, 128))"),
        ("bbox", "torch.rand(1, 128, 8)"),
    ),
    "ClapModel": "input_ids=int64[1,77]<50265, input_features=float32[1,1,1001,64]",
    "ClvpModelForConditionalGeneration": (
        "input_ids=int64[1,32]<256, input_features=float32[1,80,128]"
    ),
    "DacModel": "input_values=float32[1,1,16000]",
    "Blip2QFormerModel": (
        "query_embeds=float32[1,32,768], encoder_hidden_states=float32[1,257,1408]"
    ),
    "CanineModel": "input_ids=int64[1,128]<65536",
    "CohereCompassVisionModel": (
        ("hidden_states", "torch.randn(1024, 1536)"),
        ("grid_thw", "torch.tensor([[1, 32, 32]])"),
    ),
    "Cosmos3EdgeVisionModel": (
        ("pixel_values", "torch.randn(1024, 768)"),
        ("grid_thw", "torch.tensor([[1, 32, 32]])"),
    ),
    "DecisionTransformerModel": (
        "states=float32[1,20,17], actions=float32[1,20,4], rewards=float32[1,20,1], "
        "returns_to_go=float32[1,20,1], timesteps=int64[1,20]<4096, "
        "attention_mask=int64[1,20]=1"
    ),
    "DepthProModel": "pixel_values=float32[1,3,1536,1536]",
    "DiaForConditionalGeneration": (
        "input_ids=int64[1,128]<256, decoder_input_ids=int64[1,128,9]<1028, use_cache=false"
    ),
    "EfficientLoFTRModel": "pixel_values=float32[1,2,3,480,640]",
    "Exaone4_5_VisionModel": (
        ("hidden_states", "torch.randn(1024, 1176)"),
        ("grid_thw", "torch.tensor([[1, 32, 32]])"),
    ),
    "FastSpeech2ConformerWithHifiGan": "input_ids=int64[1,128]<78",
    "FunAsrNanoEncoder": ("input_features=float32[1,128,560], input_features_mask=int64[1,128]=1"),
    "Gemma3nAudioEncoder": (
        ("audio_mel", "torch.randn(1, 128, 128)"),
        ("audio_mel_mask", "torch.zeros(1, 128, dtype=torch.bool)"),
    ),
    "Gemma4AudioModel": "input_features=float32[1,128,128]",
    "Gemma4VisionModel": (
        ("pixel_values", "torch.rand(1, 2304, 768)"),
        (
            "pixel_position_ids",
            (
                "torch.cartesian_prod(torch.arange(48), torch.arange(48)).flip(-1)[None]"
                ".contiguous()"
            ),
        ),
    ),
    "Glm4vMoeVisionModel": (
        ("hidden_states", "torch.randn(576, 1176)"),
        ("grid_thw", "torch.tensor([[1, 24, 24]])"),
    ),
    "Glm4vVisionModel": (
        ("hidden_states", "torch.randn(576, 1176)"),
        ("grid_thw", "torch.tensor([[1, 24, 24]])"),
    ),
    "Glm5NextVisionModel": (
        ("hidden_states", "torch.randn(576, 1176)"),
        ("grid_thw", "torch.tensor([[1, 24, 24]])"),
    ),
    "GlmImageVisionModel": (
        ("pixel_values", "torch.randn(1024, 768)"),
        ("grid_thw", "torch.tensor([[1, 32, 32]])"),
    ),
    "GlmOcrVisionModel": (
        ("hidden_states", "torch.randn(576, 1176)"),
        ("grid_thw", "torch.tensor([[1, 24, 24]])"),
    ),
    "HYV4VLVisionModel": (
        ("pixel_values", "torch.randn(1024, 768)"),
        ("grid_thw", "torch.tensor([[1, 32, 32]])"),
    ),
    "HunYuanVLVisionTransformer": (
        ("pixel_values", "torch.randn(1024, 768)"),
        ("grid_thw", "torch.tensor([[1, 32, 32]])"),
    ),
    "IdeficsModel": (
        "input_ids=int64[1,128]<32000, pixel_values=float32[1,1,3,224,224], "
        "image_attention_mask=int64[1,128,1]=1, use_cache=false"
    ),
    "Inkling2VisionModel": (
        ("pixel_values", "torch.rand(256, 40, 40, 3) * 2 - 1"),
        ("image_grid_thw", "torch.tensor([[1, 16, 16]])"),
    ),
    "Kimi_K25VisionModel": (
        ("pixel_values", "torch.randn(1024, 3, 14, 14)"),
        ("grid_thw", "torch.tensor([[1, 32, 32]])"),
    ),
    "Kosmos2Model": (
        ("input_ids", "torch.randint(65037, (1, 128))"),
        ("pixel_values", "torch.randn(1, 3, 224, 224)"),
        ("image_embeds_position_mask", "(torch.arange(128) < 64).long()[None]"),
        ("use_cache", "False"),
    ),
    "KyutaiSpeechToTextForConditionalGeneration": "input_ids=int64[1,128,33]<2049, use_cache=false",
    "Lfm3VlVisionModel": (
        ("pixel_values", "torch.randn(1024, 1536)"),
        ("grid_thw", "torch.tensor([[1, 32, 32]])"),
    ),
    "LightGlueForKeypointMatching": "pixel_values=float32[1,2,3,480,640]",
    "LxmertModel": (
        "input_ids=int64[1,20]<30522, visual_feats=float32[1,36,2048], visual_pos=float32[1,36,4]"
    ),
    "MimiDecoderModel": "latents=float32[1,512,13], use_cache=false",
    "MiniCPMOcrVisionModel": (
        ("pixel_values", "torch.randn(1, 3, 224, 224)"),
        ("target_sizes", "torch.tensor([[14, 14]])"),
    ),
    "MiniCPMV4_7VisionModel": (
        ("pixel_values", "torch.randn(1, 3, 224, 224)"),
        ("target_sizes", "torch.tensor([[14, 14]])"),
    ),
    "MuseGlimmerAssistantModel": (
        "noise_embeds=float32[1,16,6656], context_hidden_states=float32[1,128,33280], "
        "use_cache=false"
    ),
    "MuseGlimmerVisionModel": (
        ("pixel_values", "torch.randn(1024, 1176)"),
        ("grid_thw", "torch.tensor([[1, 32, 32]])"),
    ),
    "MuseSparkAudioModel": "input_values=float32[1,24960]",
    "MuseSparkVisionModel": (
        ("pixel_values", "torch.randn(1024, 1176)"),
        ("grid_thw", "torch.tensor([[1, 32, 32]])"),
    ),
    "Nemotron3_5TranscribeAudioModel": "input_features=float32[1,128,128]",
    "Nemotron3_5TranscribeWordTimestampModel": "inputs_embeds=float32[1,128,1280]",
    "NeuCodecModel": "input_values=float32[1,1,16000], input_features=float32[1,50,160]",
    "OmDetTurboForObjectDetection": (
        ("pixel_values", "torch.randn(1, 3, 640, 640)"),
        ("classes_input_ids", "torch.randint(49408, (4, 77))"),
        ("classes_attention_mask", "torch.ones(4, 77, dtype=torch.int64)"),
        ("tasks_input_ids", "torch.randint(49408, (1, 77))"),
        ("tasks_attention_mask", "torch.ones(1, 77, dtype=torch.int64)"),
        ("classes_structure", "torch.tensor([4])"),
    ),
    "Sam3LiteTextModel": "pixel_values=float32[1,3,1008,1008], input_ids=int64[1,32]<49408",
    "TimesFm2_5Model": "past_values=float32[1,512], past_values_padding=int64[1,512]=0",
    "TimesFmModel": (
        "past_values=float32[1,512], past_values_padding=int64[1,512]=0, freq=int64[1,1]=0"
    ),
    "TvpModel": (
        "input_ids=int64[1,128]<30522, pixel_values=float32[1,48,3,448,448], "
        "attention_mask=int64[1,128]=1"
    ),
    "UdopModel": (
        ("input_ids", "torch.randint(33201, (1, 128))"),
        ("bbox", "torch.rand(1, 128, 4)"),
        ("decoder_input_ids", "torch.randint(33201, (1, 128))"),
        ("use_cache", "False"),
    ),
    "VibeVoiceAcousticTokenizerDecoderModel": "hidden_states=float32[1,64,16]",
    "VibeVoiceAcousticTokenizerEncoderModel": "hidden_states=float32[1,1,16000]",
    "VibeVoiceAcousticTokenizerModel": "input_values=float32[1,1,16000]",
    "ViltModel": (
        "input_ids=int64[1,40]<30522, pixel_values=float32[1,3,384,384], "
        "pixel_mask=int64[1,384,384]=1"
    ),
    "VideoLlama3VisionModel": (
        ("pixel_values", "torch.randn(1024, 768)"),
        ("grid_thw", "torch.tensor([[1, 32, 32]])"),
        ("merge_sizes", "torch.tensor([1])"),
    ),
    "XLNetLMHeadModel": "input_ids=int64[1,128]<32000",
    "XmodModel": (
        ("input_ids", "torch.randint(30522, (1, 128))"),
        ("lang_ids", "torch.zeros(1, dtype=torch.int64)"),
    ),
    "XcodecModel": "input_values=float32[1,1,16000]",
}
"""Class -> its inputs in the language of `--inputs`, or names and Python expressions where that
cannot say them."""

REFUSALS: Mapping[str, str] = {
    "AutoformerModel": ("its default configuration sets no prediction_length, which it requires"),
    "AyaVisionModel": ("its default vision configuration has 14 heads for a width of 1152"),
    "BarkModel": "has no forward(): its three models run one after the other in generate()",
    "Blip2Model": (
        "its default configuration sets no image_token_id, without which its forward() fails"
    ),
    "ChameleonModel": "its default configuration sets no vocabulary_map, which it reads",
    "CohereCompassForCausalLM": "its default rope_parameters have no entry full_attention",
    "CohereCompassModel": "its default rope_parameters have no entry full_attention",
    "DbrxForCausalLM": "its default attention configuration has no rope_theta",
    "DeepseekOcr2Model": "its default mlp_layer_types is None, and its layers read it",
    "DeepseekV2ForCausalLM": (
        "its default num_experts_per_tok is None, and its router takes so many experts"
    ),
    "DiffusionGemmaModel": (
        "its default num_experts is None, and its router has a weight for each"
    ),
    "EdgeTamVideoModel": (
        "its forward() needs an EdgeTamVideoInferenceSession, an object that keeps a video, "
        "its prompts and the results so far"
    ),
    "EsmModel": "its default configuration sets no vocab_size, so that it cannot be built",
    "Glm4vModel": (
        "its default configuration does not run: mrope_section sums up to 32, "
        "but without partial_rotary_factor there are 64 rotary frequencies"
    ),
    "HunYuanMoEV1ForCausalLM": (
        "its default configuration sets no head_dim, so that it cannot be built"
    ),
    "HunYuanVLTextModel": (
        "its default configuration sets no head_dim, so that it cannot be built"
    ),
    "InformerModel": "its default configuration sets no prediction_length, which it requires",
    "InstructBlipModel": (
        "its default configuration sets no image_token_id, without which its forward() fails"
    ),
    "InstructBlipVideoModel": (
        "its default configuration sets no video_token_id, without which its forward() fails"
    ),
}
"""Class -> why its default configuration does not run."""
