"""Inputs of forward() for classes of transformers that the rules of their parameters do not fit."""

from collections.abc import Mapping

_GLM_PATCHES = {
    "hidden_states": "torch.randn(576, 1176)",
    "grid_thw": "torch.tensor([[1, 24, 24]])",
}
_MINICPM_IMAGE = {
    "pixel_values": "torch.randn(1, 3, 224, 224)",
    "target_sizes": "torch.tensor([[14, 14]])",
}
_MUSE_PATCHES = {
    "pixel_values": "torch.randn(1024, 1176)",
    "grid_thw": "torch.tensor([[1, 32, 32]])",
}

INPUTS: Mapping[str, str | Mapping[str, str]] = {
    "AudioFlamingo3Encoder": (
        "input_features=float32[1,128,3000], input_features_mask=int64[1,3000]=1"
    ),
    "BrosModel": {
        "input_ids": "torch.randint(30522, (1, 128))",
        "bbox": "torch.rand(1, 128, 8)",
    },
    "ClapModel": "input_ids=int64[1,77]<50265, input_features=float32[1,1,1001,64]",
    "DacModel": "input_values=float32[1,1,16000]",
    "Blip2QFormerModel": (
        "query_embeds=float32[1,32,768], encoder_hidden_states=float32[1,257,1408]"
    ),
    "CanineModel": "input_ids=int64[1,128]<65536",
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
    "FastSpeech2ConformerWithHifiGan": "input_ids=int64[1,128]<78",
    "FunAsrNanoEncoder": ("input_features=float32[1,128,560], input_features_mask=int64[1,128]=1"),
    "Gemma3nAudioEncoder": {
        "audio_mel": "torch.randn(1, 128, 128)",
        "audio_mel_mask": "torch.zeros(1, 128, dtype=torch.bool)",
    },
    "Gemma4AudioModel": "input_features=float32[1,128,128]",
    "Gemma4VisionModel": {
        "pixel_values": "torch.rand(1, 2304, 768)",
        "pixel_position_ids": (
            "torch.cartesian_prod(torch.arange(48), torch.arange(48)).flip(-1)[None].contiguous()"
        ),
    },
    "Glm4vMoeVisionModel": _GLM_PATCHES,
    "Glm4vVisionModel": _GLM_PATCHES,
    "Glm5NextVisionModel": _GLM_PATCHES,
    "GlmOcrVisionModel": _GLM_PATCHES,
    "GraniteSpeech5Encoder": "input_features=float32[1,128,320]",
    "GraniteSpeech5ForCTC": "input_features=float32[1,128,320]",
    "IdeficsModel": (
        "input_ids=int64[1,128]<32000, pixel_values=float32[1,1,3,224,224], "
        "image_attention_mask=int64[1,128,1]=1, use_cache=false"
    ),
    "Inkling2VisionModel": {
        "pixel_values": "torch.rand(256, 40, 40, 3) * 2 - 1",
        "image_grid_thw": "torch.tensor([[1, 16, 16]])",
    },
    "Kimi_K25VisionModel": {
        "pixel_values": "torch.randn(1024, 3, 14, 14)",
        "grid_thw": "torch.tensor([[1, 32, 32]])",
    },
    "Kosmos2Model": {
        "input_ids": "torch.randint(65037, (1, 128))",
        "pixel_values": "torch.randn(1, 3, 224, 224)",
        "image_embeds_position_mask": "(torch.arange(128) < 64).long()[None]",
        "use_cache": "False",
    },
    "KyutaiSpeechToTextForConditionalGeneration": "input_ids=int64[1,128,33]<2049, use_cache=false",
    "LightGlueForKeypointMatching": "pixel_values=float32[1,2,3,480,640]",
    "LxmertModel": (
        "input_ids=int64[1,20]<30522, visual_feats=float32[1,36,2048], visual_pos=float32[1,36,4]"
    ),
    "MimiDecoderModel": "latents=float32[1,512,13], use_cache=false",
    "MiniCPMOcrVisionModel": _MINICPM_IMAGE,
    "MiniCPMV4_7VisionModel": _MINICPM_IMAGE,
    "MuseGlimmerAssistantModel": (
        "noise_embeds=float32[1,16,6656], context_hidden_states=float32[1,128,33280], "
        "use_cache=false"
    ),
    "MuseGlimmerVisionModel": _MUSE_PATCHES,
    "MuseSparkAudioModel": "input_values=float32[1,24960]",
    "MuseSparkVisionModel": _MUSE_PATCHES,
    "MusicgenForCausalLM": "input_ids=int64[4,128]<2048, use_cache=false",
    "MusicgenMelodyForCausalLM": "input_ids=int64[4,128]<2048, use_cache=false",
    "Nemotron3_5TranscribeAudioModel": "input_features=float32[1,128,128]",
    "Nemotron3_5TranscribeWordTimestampModel": "inputs_embeds=float32[1,128,1280]",
    "NeuCodecModel": "input_values=float32[1,1,16000], input_features=float32[1,50,160]",
    "OmDetTurboForObjectDetection": {
        "pixel_values": "torch.randn(1, 3, 640, 640)",
        "classes_input_ids": "torch.randint(49408, (4, 77))",
        "classes_attention_mask": "torch.ones(4, 77, dtype=torch.int64)",
        "tasks_input_ids": "torch.randint(49408, (1, 77))",
        "tasks_attention_mask": "torch.ones(1, 77, dtype=torch.int64)",
        "classes_structure": "torch.tensor([4])",
    },
    "OmniASRAudioModel": "input_values=float32[1,1,16000]",
    "OmniASRCTCModel": "input_values=float32[1,1,16000]",
    "OneFormerModel": "pixel_values=float32[1,3,512,512], task_inputs=float32[1,77]",
    "PeAudioEncoder": "input_values=float32[1,1,16000]",
    "PeAudioModel": "input_ids=int64[1,77]<50368, input_values=float32[1,1,16000]",
    "PeAudioVideoEncoder": (
        "input_values=float32[1,1,16000], pixel_values_videos=float32[1,16,3,336,336]"
    ),
    "PeAudioVideoModel": (
        "input_ids=int64[1,77]<50368, pixel_values_videos=float32[1,16,3,336,336], "
        "input_values=float32[1,1,16000]"
    ),
    "PeVideoEncoder": "pixel_values_videos=float32[1,16,3,336,336]",
    "PeVideoModel": "input_ids=int64[1,77]<50368, pixel_values_videos=float32[1,16,3,336,336]",
    "PerceiverModel": "inputs=float32[1,2048,768]",
    "PocketTTSAudioTokenizerDecoderModel": "latents=float32[1,512,13]",
    "Qwen3ASREncoder": "input_features=float32[1,128,800], input_features_mask=int64[1,800]=1",
    "RfDetrModel": "pixel_values=float32[1,3,560,560]",
    "Sam2Model": {
        "pixel_values": "torch.randn(1, 3, 1024, 1024)",
        "input_points": "torch.rand(1, 1, 1, 2) * 1024",
        "input_labels": "torch.ones(1, 1, 1, dtype=torch.int64)",
    },
    "Sam3LiteTextTextModel": "input_ids=int64[1,32]<49408",
    "GraniteMoeHybridForCausalLM": "input_ids=int64[1,128]<32000, use_cache=false",
    "SegGptModel": (
        "pixel_values=float32[1,3,448,448], prompt_pixel_values=float32[1,3,448,448], "
        "prompt_masks=float32[1,3,448,448]"
    ),
    "Sam3Model": "pixel_values=float32[1,3,1008,1008], input_ids=int64[1,32]<49408",
    "Siglip2Model": {
        "input_ids": "torch.randint(32000, (1, 64))",
        "pixel_values": "torch.rand(1, 256, 768) * 2 - 1",
        "pixel_attention_mask": "torch.ones(1, 256, dtype=torch.int64)",
        "spatial_shapes": "torch.tensor([[16, 16]])",
    },
    "Siglip2VisionModel": {
        "pixel_values": "torch.rand(1, 256, 768) * 2 - 1",
        "pixel_attention_mask": "torch.ones(1, 256, dtype=torch.int64)",
        "spatial_shapes": "torch.tensor([[16, 16]])",
    },
    "Sam3LiteTextModel": "pixel_values=float32[1,3,1008,1008], input_ids=int64[1,32]<49408",
    "TimesFm2_5Model": "past_values=float32[1,512], past_values_padding=int64[1,512]=0",
    "TimesFmModel": (
        "past_values=float32[1,512], past_values_padding=int64[1,512]=0, freq=int64[1,1]=0"
    ),
    "TvpModel": (
        "input_ids=int64[1,128]<30522, pixel_values=float32[1,48,3,448,448], "
        "attention_mask=int64[1,128]=1"
    ),
    "UdopModel": {
        "input_ids": "torch.randint(33201, (1, 128))",
        "bbox": "torch.rand(1, 128, 4)",
        "decoder_input_ids": "torch.randint(33201, (1, 128))",
        "use_cache": "False",
    },
    "VibeVoiceAcousticTokenizerDecoderModel": "hidden_states=float32[1,64,16]",
    "VibeVoiceAcousticTokenizerEncoderModel": "hidden_states=float32[1,1,16000]",
    "VibeVoiceAcousticTokenizerModel": "input_values=float32[1,1,16000]",
    "ViltModel": (
        "input_ids=int64[1,40]<30522, pixel_values=float32[1,3,384,384], "
        "pixel_mask=int64[1,384,384]=1"
    ),
    "VideoLlama3VisionModel": {
        "pixel_values": "torch.randn(1024, 768)",
        "grid_thw": "torch.tensor([[1, 32, 32]])",
        "merge_sizes": "torch.tensor([1])",
    },
    "VoxtralRealtimeForConditionalGeneration": (
        "input_ids=int64[1,128]<131072, input_features=float32[1,128,1024], use_cache=false"
    ),
    "XLNetLMHeadModel": "input_ids=int64[1,128]<32000",
    "XmodModel": {
        "input_ids": "torch.randint(30522, (1, 128))",
        "lang_ids": "torch.zeros(1, dtype=torch.int64)",
    },
    "XcodecModel": "input_values=float32[1,1,16000]",
}
"""Class -> its inputs in the language of `--inputs`, or names and Python expressions where that
cannot say them."""

_VIDEO_SESSION = (
    "its forward() needs an inference session, an object that keeps a video, its prompts and the "
    "results so far"
)
_WITHOUT_PARTIAL_ROTATION = (
    "its default configuration does not run: mrope_section sums up to 32, "
    "but without partial_rotary_factor there are 64 rotary frequencies"
)
_WITHOUT_HEAD_DIM = "its default configuration sets no head_dim, so that it cannot be built"

REFUSALS: Mapping[str, str] = {
    "AutoformerModel": ("its default configuration sets no prediction_length, which it requires"),
    "AyaVisionModel": ("its default vision configuration has 14 heads for a width of 1152"),
    "BarkModel": "has no forward(): its three models run one after the other in generate()",
    "Blip2Model": (
        "its default configuration sets no image_token_id, without which its forward() fails"
    ),
    "ChameleonModel": "its default configuration sets no vocabulary_map, which it reads",
    "ClvpModelForConditionalGeneration": (
        "its default speech encoder knows 256 codes, and its decoder gives 8,194"
    ),
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
    "Dots1ForCausalLM": "its default n_routed_experts is None, and its router has a row for each",
    "EdgeTamModel": (
        "its default backbone is a ResNet of 1024 channels, and its neck takes 384 of a RepViT"
    ),
    "EdgeTamVideoModel": _VIDEO_SESSION,
    "EdgeTamVisionModel": (
        "its default backbone is a ResNet of 1024 channels, and its neck takes 384 of a RepViT"
    ),
    "EsmModel": "its default configuration sets no vocab_size, so that it cannot be built",
    "Gemma4UnifiedAssistantForCausalLM": (
        "its forward() needs the keys and values of the model that it assists"
    ),
    "Glm4vModel": _WITHOUT_PARTIAL_ROTATION,
    "Granite4VisionModel": (
        "its default deepstack_layer_map is None, and it has a projector for each of its entries"
    ),
    "HunYuanMoEV1ForCausalLM": _WITHOUT_HEAD_DIM,
    "HunYuanVLTextModel": _WITHOUT_HEAD_DIM,
    "InformerModel": "its default configuration sets no prediction_length, which it requires",
    "InstructBlipModel": (
        "its default configuration sets no image_token_id, without which its forward() fails"
    ),
    "InstructBlipVideoModel": (
        "its default configuration sets no video_token_id, without which its forward() fails"
    ),
    "Glm46VModel": _WITHOUT_PARTIAL_ROTATION,
    "Glm4vTextModel": _WITHOUT_PARTIAL_ROTATION,
    "GlmImageModel": _WITHOUT_PARTIAL_ROTATION,
    "GlmImageTextModel": _WITHOUT_PARTIAL_ROTATION,
    "Glm4vMoeModel": "its default heads have 42 numbers, and its mrope_section is for 64",
    "Glm4vMoeTextModel": "its default heads have 42 numbers, and its mrope_section is for 64",
    "HunYuanDenseV1ForCausalLM": _WITHOUT_HEAD_DIM,
    "HunYuanVLModel": _WITHOUT_HEAD_DIM,
    "LwDetrModel": "its default projector_scale_factors are empty, so that it has no features",
    "MinistralForCausalLM": _WITHOUT_HEAD_DIM,
    "NemotronForCausalLM": (
        "its default configuration sets no num_key_value_heads, so that it cannot be built"
    ),
    "Lfm2MoeForCausalLM": "its default configuration sets no layer_types, which it reads",
    "MoonshineStreamingForConditionalGeneration": (
        "its cache asks the configuration for num_key_value_heads, which only its decoder's has"
    ),
    "PPOCRV6MediumDetModel": (
        "its default intraclass_block_config is None, and its convolutions read their sizes there"
    ),
    "PPOCRV6SmallDetModel": (
        "its default backbone gives 384 channels, and its neck takes 12 by default"
    ),
    "PerceptionLMModel": "its default vision_config has no model_args, which its projector reads",
    "Qwen4ExpForCausalLM": "its default indexer_budget is None, and its constructor divides it",
    "Sam2VideoModel": _VIDEO_SESSION,
    "Sam3TrackerVideoModel": _VIDEO_SESSION,
    "Sam3VideoModel": _VIDEO_SESSION,
    "SpeechEncoderDecoderModel": "has no default: its encoder and its decoder are to be chosen",
    "T5Gemma2Encoder": (
        "its own default configuration has no dropout_rate, which that of the whole model sets"
    ),
    "TimmBackbone": "has no default: the model of timm that it wraps is to be chosen",
    "GlmImageVQVAE": "has no forward(): GlmImageModel calls its encode() and its decoder",
    "Qwen3OmniMoeThinkerModel": (
        "its default text configuration has 28 heads for a width of 2048: heads of 73 numbers, "
        "which its rotary embedding cannot turn in pairs"
    ),
    "UVDocModel": "its default backbone gives 128 channels, and its neck takes 768 by default",
    "Step3p7Model": "its default configuration sets no sliding_window, which its masks read",
}
"""Class -> why its default configuration does not run."""
