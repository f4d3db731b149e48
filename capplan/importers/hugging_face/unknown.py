"""What to do about keys that nothing here reads.

A configuration may say things that this version has never heard of. A new kind of attention or a
latent expert size changes memory and compute, so a count that ignores it would be wrong; a training
coefficient or a token number changes nothing, so refusing it would be a nuisance. The rule, in this
order:

1. A key that a reader of the family has read is understood.
2. A key on the lists of the harmless, or with one of their words, passes whatever its value:
   token numbers, sampling, training, scaling of values, positions, routing scores, towers for
   images and sound. None of them adds a weight, a cache entry or a matrix product.
3. A value that switches nothing on passes: null, false, 0, an empty text, list or mapping.
4. A key of whose name any word is structural is refused by name: sizes, counts, heads, layers,
   experts, attention, state, cache, and the like; a mapping also for a key inside it.
5. All else passes: it names nothing that has a size.

So an unknown key is refused on the suspicion that its name raises. What is wrongly refused can be
removed from the file by whoever knows that it changes nothing; what is wrongly passed would give a
wrong number without a word, so the words of rule 4 are broad and the lists of rule 2 are closed.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from capplan.importers.hugging_face.keys import Keys

DEEPEST: Final = 20
"""Mappings inside mappings; no configuration comes near it."""

HARMLESS: Final = frozenset(
    """
    _attn_implementation _attn_implementation_autoset _experts_implementation _name_or_path
    activation_situ_beta architectures base_model_ep_plan base_model_pp_plan base_model_tp_plan
    attention_value_scale attn_implementation auto_map
    cache_implementation clip_qkv ep_size ignore_index is_decoder is_encoder_decoder
    latent_moe_overlap mla_use_nope model_type modality moe_renormalize
    moe_router_activation_func moe_router_dtype moe_shared_expert_overlap n_group
    norm_before_residual norm_topk_prob num_expert_group num_logits_to_keep original_vocab_size
    partial_rotary_factor pretraining_tp query_pre_attn_scalar rescale_prenorm_residual
    residual_in_fp32 rope_interleave rope_local_base_freq rope_parameters rope_scaling rope_type
    rotary_dim routed_scaling_factor scoring_func seq_aux expert_selection_fn topk_group topk_method
    torchscript transformers_version use_gemma_norm use_grouped_topk use_mamba_kernels
    use_unified_vision_chunk mamba_hidden_act position_embedding_type hc_sinkhorn_iters
    index_share_for_mtp_iteration index_kpool_always_select_tail
    original_max_position_embeddings generation_config image_placeholder
    indexer_rope_interleave video_placeholder
    """.split()  # noqa: SIM905 - a list of eighty lines would say no more
)
SAMPLING: Final = frozenset(
    """
    add_cross_attention bad_words_ids begin_suppress_tokens chunk_size_feed_forward
    cross_attention_hidden_size diversity_penalty do_sample early_stopping
    encoder_no_repeat_ngram_size exponential_decay_length_penalty finetuning_task id2label label2id
    length_penalty max_length min_length no_repeat_ngram_size num_beam_groups num_beams
    num_return_sequences output_attentions output_hidden_states output_router_logits output_scores
    prefix problem_type pruned_heads remove_invalid_values repetition_penalty return_dict
    return_dict_in_generate suppress_tokens task_specific_params temperature tf_legacy_loss
    tie_encoder_decoder tokenizer_class top_k top_p typical_p use_bfloat16 use_cache
    """.split()  # noqa: SIM905
)
TOWERS: Final = frozenset({"vision_config", "audio_config", "video_config", "image_config"})
TOKENS: Final = re.compile(
    r"^_|token_(ids?|index|indices)$|_theta$|^(time_step|rope|rotary)_[a-z]+$"
)
"""What transformers notes for itself; special tokens; a recurrence's time step; positions."""
PASSING: Final = frozenset(
    """
    alpha backend base beta bound clamp clip coef coefficient cutoff decay dropout drop dtypes eps
    epsilon factor init initializer initialization implementation jitter license limit loss lr max
    min multiplier name noise path pdrop penalty range rate revision rms scalar scale scaling score
    seed softcap softcapping std temperature theta train training url version
    """.split()  # noqa: SIM905
)
"""Words of keys that scale, bound, describe or train, and so pass whatever else the name says…"""
SIZES: Final = frozenset(
    """
    bits compress compression depth dim dims expand expansion experts ffn heads layers num n rank
    ratio size sizes tokens width widening window
    """.split()  # noqa: SIM905
)
"""…unless it says one of these: ffn_dim_multiplier is a size."""
STRUCTURAL: Final = frozenset(
    """
    attention attn bias bits block blocks bottleneck branch branches cache channel channels chunk
    compress compressed compression compressor config configs conv convolution cross delta dense
    depth dim dims dimension draft dtype embed embedding embeddings engram expand expansion expert
    experts factorized ffn freq frequency gate gated global group groups hash head heads hidden hop
    hybrid index indexer inner interval intermediate kernel key keys kv kvs latent layer layers
    linear local lookup lora lru mamba memory mha mla mlp mixer moe mtp multi n ngram
    nextn nsa num number pattern period pool pooling predict prediction proj projection quant
    quantization query rank ratio ratios recurrent register residual retrieval rnn route routed
    router rwkv scan shared sharing size sizes skip sliding slot slots sparse sparsity spec ssm
    stage stages state states step steps stride tie tied topk tower types up value values
    vocab vocabulary weight weights width window windows
    """.split()  # noqa: SIM905
)
REMEDY: Final = "If you know that it changes neither memory nor compute, remove it from the file."


def complain(keys: Keys) -> None:
    """Complains of every key left unread that may change what a step reads, computes and keeps."""
    for mapping in keys.report.mappings:
        for key, value in mapping.left().items():
            if may_matter(key, value):
                mapping.complain(key, "not known, and may change memory or compute", REMEDY)


def may_matter(key: str, value: Any, depth: int = 0) -> bool:
    """Whether an unknown key could change memory or compute."""
    if key in HARMLESS or key in SAMPLING or key in TOWERS or TOKENS.search(key):
        return False
    if not value:
        return False
    words = set(re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).lower()))
    if words & PASSING and not words & SIZES:
        return False
    if words & STRUCTURAL or depth >= DEEPEST:
        return True
    if isinstance(value, Mapping):
        return any(may_matter(str(inner), within, depth + 1) for inner, within in value.items())
    return False
