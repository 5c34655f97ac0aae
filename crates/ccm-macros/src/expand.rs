//! Generates the implementations of the derive macro.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Result};

use crate::field::{Field, Phase};

/// The implementations for the properties of a resource.
pub(crate) fn properties(input: &DeriveInput) -> Result<TokenStream> {
    let fields = fields(input)?;
    if let Some(field) = fields.iter().find(|field| field.setting.is_used()) {
        let message = "only settings have `default`, `one_of` and `check`";
        return Err(Error::new_spanned(&field.ident, message));
    }
    let (common, own): (Vec<_>, Vec<_>) = fields.iter().partition(|field| field.common);
    let common = common.first().copied();

    let parts = [
        table(input, common, &own),
        serialize(input, common, &own),
        from_node(input),
        common.map(|common| with_common(input, common)).unwrap_or_default(),
    ];
    Ok(quote!(#(#parts)*))
}

/// The implementations for the settings of a program.
pub(crate) fn settings(input: &DeriveInput) -> Result<TokenStream> {
    let fields = fields(input)?;
    let name = &input.ident;
    let entries = fields.iter().map(Field::table_entry);
    let sets = fields.iter().enumerate().map(|(at, field)| {
        let set = field.set();
        quote!(#at => #set)
    });
    let idents = fields.iter().map(|field| &field.ident);
    Ok(quote! {
        impl ::ccm_model::Fields for #name {
            const FIELDS: &'static [::ccm_model::Field] = &[#(#entries),*];
            const ENTRY: &'static str = "setting";

            fn set(
                &mut self,
                index: usize,
                node: ::ccm_model::Node<'_>,
                reader: &mut ::ccm_model::Reader,
            ) {
                match index {
                    #(#sets)*
                    _ => {}
                }
            }

            fn hint(_name: &str) -> Option<&'static str> {
                None
            }
        }

        impl Default for #name {
            fn default() -> Self {
                let mut settings = Self { #(#idents: Default::default()),* };
                ::ccm_model::Reader::default().set_defaults(&mut settings);
                settings
            }
        }
    })
}

fn fields(input: &DeriveInput) -> Result<Vec<Field>> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(input, "properties and settings are structs"));
    };
    data.fields.iter().map(Field::new).collect()
}

fn table(input: &DeriveInput, common: Option<&Field>, own: &[&Field]) -> TokenStream {
    let name = &input.ident;
    let entries = own.iter().map(|field| field.table_entry());
    let own_count = own.len();
    let (offset, fields, set_common, resolve_common) = match common {
        None => (quote!(0), quote!(&[#(#entries),*]), quote!(), quote!()),
        Some(Field { ident, ty, .. }) => (
            quote!(<#ty as ::ccm_model::Fields>::FIELDS.len()),
            quote! {{
                const OWN: [::ccm_model::Field; #own_count] = [#(#entries),*];
                const COMMON: &[::ccm_model::Field] = <#ty as ::ccm_model::Fields>::FIELDS;
                &::ccm_model::concat_fields::<{ #own_count + COMMON.len() }>(COMMON, &OWN)
            }},
            quote!(if index < Self::OFFSET { return self.#ident.set(index, node, reader); }),
            quote!(::ccm_model::Fields::resolve(&mut self.#ident, phase, templates, failures);),
        ),
    };
    let sets = own.iter().enumerate().map(|(at, field)| {
        let set = field.set();
        quote!(#at => #set)
    });
    let resolves = own.iter().enumerate().filter_map(|(at, field)| {
        let ident = &field.ident;
        let (when, keys) = match field.phase {
            Phase::Never => return None,
            Phase::Parse => (quote!(::ccm_model::Stage::Parse), false),
            Phase::Keys => (quote!(::ccm_model::Stage::Parse), true),
            Phase::Deferred => (quote!(::ccm_model::Stage::Apply), false),
        };
        Some(quote! {
            if phase == #when {
                if let Err(error) = ::ccm_model::Resolve::resolve(&mut self.#ident, templates, #keys) {
                    failures.push((Self::OFFSET + #at, error));
                }
            }
        })
    });
    let secrets = own.iter().filter(|field| field.secret || field.secret_values).map(|field| {
        let ident = &field.ident;
        quote!(::ccm_model::Secrets::secrets(&self.#ident, into);)
    });
    quote! {
        impl #name {
            const OFFSET: usize = #offset;
        }

        impl ::ccm_model::Fields for #name {
            const FIELDS: &'static [::ccm_model::Field] = #fields;

            fn set(
                &mut self,
                index: usize,
                node: ::ccm_model::Node<'_>,
                reader: &mut ::ccm_model::Reader,
            ) {
                #set_common
                match index - Self::OFFSET {
                    #(#sets)*
                    _ => {}
                }
            }

            fn resolve(
                &mut self,
                phase: ::ccm_model::Stage,
                templates: &dyn ::ccm_model::Templates,
                failures: &mut Vec<(usize, ::ccm_model::TemplateError)>,
            ) {
                #resolve_common
                #(#resolves)*
            }

            #[allow(unused_variables, reason = "most types have no secrets")]
            fn secrets(&self, into: &mut ::ccm_model::SecretValues) {
                #(#secrets)*
            }
        }

        impl ::ccm_model::Resolve for #name {
            fn resolve(
                &mut self,
                templates: &dyn ::ccm_model::Templates,
                _keys: bool,
            ) -> Result<(), ::ccm_model::TemplateError> {
                let mut failures = Vec::new();
                ::ccm_model::Fields::resolve(
                    self,
                    ::ccm_model::Stage::Parse,
                    templates,
                    &mut failures,
                );
                failures.into_iter().next().map_or(Ok(()), |(_, error)| Err(error))
            }
        }
    }
}

fn serialize(input: &DeriveInput, common: Option<&Field>, own: &[&Field]) -> TokenStream {
    let name = &input.ident;
    let common = common.map(|Field { ident, .. }| {
        quote!(::ccm_model::SerializeFields::serialize_fields(&self.#ident, map)?;)
    });
    let own = own.iter().map(|field| {
        let ident = &field.ident;
        let key = field.name();
        let value = if field.secret { quote!(::ccm_model::REDACTED) } else { quote!(&self.#ident) };
        quote! {
            if ::ccm_model::FromNode::is_set(&self.#ident) {
                map.serialize_entry(#key, #value)?;
            }
        }
    });
    quote! {
        impl ::ccm_model::SerializeFields for #name {
            fn serialize_fields<M: ::serde::ser::SerializeMap>(
                &self,
                map: &mut M,
            ) -> Result<(), M::Error> {
                #common
                #(#own)*
                Ok(())
            }
        }

        impl ::serde::Serialize for #name {
            fn serialize<S: ::serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                let mut map = to.serialize_map(None)?;
                ::ccm_model::SerializeFields::serialize_fields(self, &mut map)?;
                ::serde::ser::SerializeMap::end(map)
            }
        }
    }
}

fn from_node(input: &DeriveInput) -> TokenStream {
    let name = &input.ident;
    quote! {
        impl ::ccm_model::FromNode for #name {
            const SHAPE: ::ccm_model::Shape =
                ::ccm_model::Shape::Struct(<Self as ::ccm_model::Fields>::FIELDS);

            fn from_node(
                node: ::ccm_model::Node<'_>,
                reader: &mut ::ccm_model::Reader,
            ) -> Option<Self> {
                reader.read_struct(node)
            }

            fn is_set(&self) -> bool {
                true
            }
        }
    }
}

fn with_common(input: &DeriveInput, common: &Field) -> TokenStream {
    let name = &input.ident;
    let Field { ident, .. } = common;
    quote! {
        impl ::ccm_model::Properties for #name {
            fn common(&self) -> &::ccm_model::Common {
                &self.#ident
            }

            fn common_mut(&mut self) -> &mut ::ccm_model::Common {
                &mut self.#ident
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(text: &str) -> DeriveInput {
        syn::parse_str(text).unwrap()
    }

    fn code(expanded: Result<TokenStream>) -> String {
        expanded.unwrap().to_string().replace(' ', "")
    }

    #[test]
    fn mistakes_are_errors_that_say_what_to_write() {
        for (text, wanted) in [
            ("enum Kind { One }", "properties and settings are structs"),
            ("struct Own(String);", "properties need named fields"),
            ("struct Own { content: String }", "a property needs a doc comment"),
            (
                "struct Own { /** Content */ #[property(templat = never)] content: String }",
                "unknown property attribute",
            ),
            (
                "struct Own { /** Content */ #[property(template = twice)] content: String }",
                "deferred, never or keys",
            ),
            (
                "struct Own { /** Mode */ #[property(default = \"0644\")] mode: String }",
                "only settings have `default`, `one_of` and `check`",
            ),
        ] {
            let error = properties(&input(text)).unwrap_err().to_string();
            assert_eq!(error, wanted, "{text}");
        }
    }

    #[test]
    fn a_field_is_in_the_table_once_and_in_order() {
        let text = "struct Own {
            /// Desired contents
            content: Option<String>,
            /// Owning user
            owner: String,
        }";
        let code = code(properties(&input(text)));
        let at = |word: &str| code.find(word).unwrap_or_else(|| panic!("{word}: {code}"));
        assert!(at("name:\"content\"") < at("name:\"owner\""));
        assert!(code.contains("Desiredcontents") && code.contains("Owninguser"));
        for implemented in ["ccm_model::FieldsforOwn", "FromNodeforOwn", "SerializeforOwn"] {
            assert_eq!(code.matches(implemented).count(), 1, "{implemented}: {code}");
        }
        assert!(!code.contains("Propertiesfor"), "without a common field: {code}");
    }

    #[test]
    fn settings_have_defaults_and_no_resource() {
        let text = "struct Config {
            /// Time between runs
            #[property(default = \"5m\")]
            interval: String,
        }";
        let code = code(settings(&input(text)));
        assert!(code.contains("implDefaultforConfig"), "{code}");
        assert!(code.contains("\"5m\""), "{code}");
        assert!(!code.contains("Serialize"), "{code}");
    }
}
