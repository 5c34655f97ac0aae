//! One field's attributes.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, Expr, ExprLit, Lit, LitChar, LitStr, Meta, Result};

/// What `#[property(…)]` and the doc comment say of a field.
pub(crate) struct Field {
    pub(crate) ident: syn::Ident,
    pub(crate) ty: syn::Type,
    pub(crate) common: bool,
    pub(crate) phase: Phase,
    pub(crate) secret: bool,
    pub(crate) secret_values: bool,
    pub(crate) doc: String,
    aliases: Vec<LitStr>,
    conflicts: Vec<LitStr>,
    required: TokenStream,
    flag: Option<LitStr>,
    short: Option<LitChar>,
    value: Option<LitStr>,
    env: Option<LitStr>,
    cli_default: Option<LitStr>,
    format: Option<Expr>,
    group: Option<LitStr>,
    pub(crate) setting: Setting,
}

/// Attributes that only settings have: their values are never templates, so they
/// are complete when they are read.
#[derive(Default)]
pub(crate) struct Setting {
    default: Option<Expr>,
    one_of: Option<Expr>,
    check: Option<Expr>,
}

impl Setting {
    pub(crate) fn is_used(&self) -> bool {
        self.default.is_some() || self.one_of.is_some() || self.check.is_some()
    }
}

/// When a field's templates are resolved.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Parse,
    Keys,
    Deferred,
    Never,
}

impl Field {
    pub(crate) fn new(field: &syn::Field) -> Result<Self> {
        let ident = field
            .ident
            .clone()
            .ok_or_else(|| Error::new_spanned(field, "properties need named fields"))?;
        let mut this = Self {
            ident,
            ty: field.ty.clone(),
            common: false,
            phase: Phase::Parse,
            secret: false,
            secret_values: false,
            doc: doc_comment(&field.attrs),
            aliases: Vec::new(),
            conflicts: Vec::new(),
            required: quote!(::ccm_model::Required::Never),
            flag: None,
            short: None,
            value: None,
            env: None,
            cli_default: None,
            format: None,
            group: None,
            setting: Setting::default(),
        };
        for attribute in field.attrs.iter().filter(|a| a.path().is_ident("property")) {
            this.read(attribute)?;
        }
        if this.doc.is_empty() && !this.common {
            return Err(Error::new_spanned(field, "a property needs a doc comment"));
        }
        Ok(this)
    }

    fn read(&mut self, attribute: &syn::Attribute) -> Result<()> {
        attribute.parse_nested_meta(|meta| {
            let name = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
            match name.as_str() {
                "common" => self.common = true,
                "secret" => self.secret = true,
                "secret_values" => self.secret_values = true,
                "required" => self.required = quote!(::ccm_model::Required::Always),
                "required_unless" => {
                    let inner;
                    syn::parenthesized!(inner in meta.input);
                    let what: syn::Ident = inner.parse()?;
                    inner.parse::<syn::Token![=]>()?;
                    self.required = if what == "set" {
                        let word: LitStr = inner.parse()?;
                        quote!(::ccm_model::Required::UnlessSet(#word))
                    } else {
                        let words = inner.parse_terminated(
                            <LitStr as syn::parse::Parse>::parse,
                            syn::Token![|],
                        )?;
                        let words = words.iter();
                        quote!(::ccm_model::Required::UnlessEnsure(&[#(#words),*]))
                    };
                }
                "template" => {
                    let word: syn::Ident = meta.value()?.parse()?;
                    self.phase = match word.to_string().as_str() {
                        "deferred" => Phase::Deferred,
                        "never" => Phase::Never,
                        "keys" => Phase::Keys,
                        _ => return Err(Error::new_spanned(word, "deferred, never or keys")),
                    };
                }
                "alias" => self.aliases.push(meta.value()?.parse()?),
                "conflicts" => {
                    let inner;
                    syn::parenthesized!(inner in meta.input);
                    self.conflicts.push(inner.parse()?);
                }
                "flag" => self.flag = Some(meta.value()?.parse()?),
                "short" => self.short = Some(meta.value()?.parse()?),
                "value" => self.value = Some(meta.value()?.parse()?),
                "env" => self.env = Some(meta.value()?.parse()?),
                "format" => self.format = Some(meta.value()?.parse()?),
                "group" => self.group = Some(meta.value()?.parse()?),
                "cli_default" => self.cli_default = Some(meta.value()?.parse()?),
                "default" => self.setting.default = Some(meta.value()?.parse()?),
                "one_of" => self.setting.one_of = Some(meta.value()?.parse()?),
                "check" => self.setting.check = Some(meta.value()?.parse()?),
                _ => return Err(meta.error("unknown property attribute")),
            }
            Ok(())
        })
    }

    /// The property's name in manifests.
    pub(crate) fn name(&self) -> String {
        self.ident.to_string().trim_start_matches("r#").to_owned()
    }

    /// Sets the field from `node`.
    pub(crate) fn set(&self) -> TokenStream {
        let Self { ident, ty, .. } = self;
        let read = match &self.setting.one_of {
            Some(words) => quote!(reader.read_one_of(node, #words)),
            None => quote!(reader.read(node)),
        };
        match &self.setting.check {
            None => quote!(if let Some(value) = #read { self.#ident = value; }),
            Some(check) => quote! {{
                let span = node.span;
                let read: Option<#ty> = #read;
                if let Some(value) = read && reader.check(span, (#check)(&value)) {
                    self.#ident = value;
                }
            }},
        }
    }

    /// The entry of the field table.
    pub(crate) fn table_entry(&self) -> TokenStream {
        let Self { ty, doc, secret, secret_values, aliases, conflicts, required, .. } = self;
        let name = self.name();
        let phase = match self.phase {
            Phase::Parse => quote!(Parse),
            Phase::Keys => quote!(Keys),
            Phase::Deferred => quote!(Deferred),
            Phase::Never => quote!(Never),
        };
        let long = self.flag.as_ref().map_or_else(|| name.replace('_', "-"), LitStr::value);
        let short = option(self.short.as_ref());
        let value = option(self.value.as_ref());
        let env = option(self.env.as_ref());
        let cli_default = option(self.cli_default.as_ref());
        let group = option(self.group.as_ref());
        let default = option(self.setting.default.as_ref());
        let shape = match self.setting.one_of {
            Some(_) => quote!(::ccm_model::Shape::Text),
            None => quote!(<#ty as ::ccm_model::FromNode>::SHAPE),
        };
        let format = match &self.format {
            Some(format) => quote!(Some(::ccm_model::Format::#format)),
            None => quote!(None),
        };
        quote! {
            ::ccm_model::Field {
                name: #name,
                doc: #doc,
                aliases: &[#(#aliases),*],
                shape: #shape,
                default: #default,
                format: #format,
                group: #group,
                phase: ::ccm_model::Phase::#phase,
                secret: #secret,
                secret_values: #secret_values,
                required: #required,
                conflicts: &[#(#conflicts),*],
                flag: ::ccm_model::Flag {
                    long: #long,
                    short: #short,
                    value: #value,
                    env: #env,
                    default: #cli_default,
                },
            }
        }
    }
}

fn option<T: quote::ToTokens>(value: Option<&T>) -> TokenStream {
    value.map_or_else(|| quote!(None), |value| quote!(Some(#value)))
}

fn doc_comment(attrs: &[syn::Attribute]) -> String {
    let lines = attrs.iter().filter(|a| a.path().is_ident("doc")).filter_map(|a| match &a.meta {
        Meta::NameValue(pair) => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value().trim().to_owned()),
            _ => None,
        },
        _ => None,
    });
    lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}
