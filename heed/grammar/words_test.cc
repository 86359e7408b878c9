// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "heed/grammar/english.h"
#include "heed/grammar/spanish.h"

namespace heed::grammar {
namespace {

TEST(EnglishWords, NounsFollowTheRuleOrTheTable) {
  const auto plural = [](const char* word) { return english::noun_form(noun(word), Number::plural); };
  EXPECT_EQ(plural("dog"), "dogs");
  EXPECT_EQ(plural("strawberry"), "strawberries");
  EXPECT_EQ(plural("donkey"), "donkeys");
  EXPECT_EQ(plural("box"), "boxes");
  EXPECT_EQ(plural("church"), "churches");
  EXPECT_EQ(plural("bus"), "buses");
  EXPECT_EQ(plural("actress"), "actresses");
  EXPECT_EQ(plural("mouse"), "mice");
  EXPECT_EQ(plural("wolf"), "wolves");
  EXPECT_EQ(plural("knife"), "knives");
  EXPECT_EQ(plural("tomato"), "tomatoes");
  EXPECT_EQ(plural("piano"), "pianos");
  EXPECT_EQ(english::noun_form(noun("mouse"), Number::singular), "mouse");
}

TEST(EnglishWords, VerbsFollowTheRuleOrTheTable) {
  EXPECT_EQ(english::third_person("cross"), "crosses");
  EXPECT_EQ(english::third_person("carry"), "carries");
  EXPECT_EQ(english::third_person("buy"), "buys");
  EXPECT_EQ(english::third_person("watch"), "watches");
  EXPECT_EQ(english::third_person("close"), "closes");
  const auto past = [](const char* word) { return english::past(verb(word)); };
  EXPECT_EQ(past("cross"), "crossed");
  EXPECT_EQ(past("carry"), "carried");
  EXPECT_EQ(past("close"), "closed");
  EXPECT_EQ(past("hug"), "hugged");
  EXPECT_EQ(past("eat"), "ate");
  EXPECT_EQ(past("put"), "put");
  EXPECT_EQ(past("look for"), "looked");
  EXPECT_EQ(english::base(verb("look for")), "look");
  EXPECT_EQ(english::preposition(verb("look for")), "for");
  EXPECT_EQ(english::preposition(verb("eat")), "");
}

TEST(EnglishWords, TheArticleListensToTheNextWord) {
  EXPECT_EQ(english::indefinite("apple"), "an");
  EXPECT_EQ(english::indefinite("old"), "an");
  EXPECT_EQ(english::indefinite("house"), "a");
}

TEST(SpanishWords, Plurals) {
  EXPECT_EQ(spanish::plural("casa"), "casas");
  EXPECT_EQ(spanish::plural("calle"), "calles");
  EXPECT_EQ(spanish::plural("sofá"), "sofás");
  EXPECT_EQ(spanish::plural("café"), "cafés");
  EXPECT_EQ(spanish::plural("actriz"), "actrices");
  EXPECT_EQ(spanish::plural("jardín"), "jardines");
  EXPECT_EQ(spanish::plural("autobús"), "autobuses");
  EXPECT_EQ(spanish::plural("camión"), "camiones");
  EXPECT_EQ(spanish::plural("habitación"), "habitaciones");
  EXPECT_EQ(spanish::plural("ratón"), "ratones");
  EXPECT_EQ(spanish::plural("árbol"), "árboles");
  EXPECT_EQ(spanish::plural("túnel"), "túneles");
  EXPECT_EQ(spanish::plural("rey"), "reyes");
  EXPECT_EQ(spanish::plural("reloj"), "relojes");
  EXPECT_EQ(spanish::plural("ordenador"), "ordenadores");
  EXPECT_EQ(spanish::noun_form(noun("eagle"), Number::plural), "águilas");
}

struct FourForms {
  const char *english, *masculine, *feminine, *masculine_plural, *feminine_plural;
};

TEST(SpanishWords, AdjectivesAgree) {
  constexpr FourForms kCases[] = {
      {"tired", "cansado", "cansada", "cansados", "cansadas"},
      {"big", "grande", "grande", "grandes", "grandes"},
      {"young", "joven", "joven", "jóvenes", "jóvenes"},
      {"easy", "fácil", "fácil", "fáciles", "fáciles"},
      {"blue", "azul", "azul", "azules", "azules"},
      {"brown", "marrón", "marrón", "marrones", "marrones"},
      {"hardworking", "trabajador", "trabajadora", "trabajadores", "trabajadoras"},
      {"empty", "vacío", "vacía", "vacíos", "vacías"},
      {"good", "bueno", "buena", "buenos", "buenas"},
  };
  for (const FourForms& forms : kCases) {
    const Adjective& word = adjective(forms.english);
    EXPECT_EQ(spanish::adjective_form(word, {Gender::masculine, Number::singular}), forms.masculine);
    EXPECT_EQ(spanish::adjective_form(word, {Gender::feminine, Number::singular}), forms.feminine);
    EXPECT_EQ(spanish::adjective_form(word, {Gender::masculine, Number::plural}), forms.masculine_plural);
    EXPECT_EQ(spanish::adjective_form(word, {Gender::feminine, Number::plural}), forms.feminine_plural);
  }
}

TEST(SpanishWords, SomeAdjectivesAreShortBeforeTheNoun) {
  constexpr FourForms kCases[] = {
      {"good", "buen", "buena", "buenos", "buenas"},          {"bad", "mal", "mala", "malos", "malas"},
      {"great", "gran", "gran", "grandes", "grandes"},        {"first", "primer", "primera", "primeros", "primeras"},
      {"third", "tercer", "tercera", "terceros", "terceras"}, {"last", "último", "última", "últimos", "últimas"},
  };
  for (const FourForms& forms : kCases) {
    const Adjective& word = adjective(forms.english);
    EXPECT_EQ(spanish::adjective_before_noun(word, {Gender::masculine, Number::singular}), forms.masculine);
    EXPECT_EQ(spanish::adjective_before_noun(word, {Gender::feminine, Number::singular}), forms.feminine);
    EXPECT_EQ(spanish::adjective_before_noun(word, {Gender::masculine, Number::plural}), forms.masculine_plural);
    EXPECT_EQ(spanish::adjective_before_noun(word, {Gender::feminine, Number::plural}), forms.feminine_plural);
  }
}

struct Conjugated {
  const char *english, *he, *they, *he_did, *they_did;
};

TEST(SpanishWords, EventsHaveAPreterite) {
  constexpr Conjugated kCases[] = {
      {"cross", "cruza", "cruzan", "cruzó", "cruzaron"},
      {"eat", "come", "comen", "comió", "comieron"},
      {"open", "abre", "abren", "abrió", "abrieron"},
      {"close", "cierra", "cierran", "cerró", "cerraron"},
      {"find", "encuentra", "encuentran", "encontró", "encontraron"},
      {"move", "mueve", "mueven", "movió", "movieron"},
      {"bite", "muerde", "muerden", "mordió", "mordieron"},
      {"sleep", "duerme", "duermen", "durmió", "durmieron"},
      {"follow", "sigue", "siguen", "siguió", "siguieron"},
      {"choose", "elige", "eligen", "eligió", "eligieron"},
      {"read", "lee", "leen", "leyó", "leyeron"},
      {"fall", "cae", "caen", "cayó", "cayeron"},
      {"hear", "oye", "oyen", "oyó", "oyeron"},
      {"build", "construye", "construyen", "construyó", "construyeron"},
      {"see", "ve", "ven", "vio", "vieron"},
      {"put", "pone", "ponen", "puso", "pusieron"},
      {"bring", "trae", "traen", "trajo", "trajeron"},
      {"drive", "conduce", "conducen", "condujo", "condujeron"},
      {"translate", "traduce", "traducen", "tradujo", "tradujeron"},
      {"send", "envía", "envían", "envió", "enviaron"},
      {"lose", "pierde", "pierden", "perdió", "perdieron"},
      {"enter", "entra", "entran", "entró", "entraron"},
      {"fly", "vuela", "vuelan", "voló", "volaron"},
  };
  for (const auto& [english, he, they, he_did, they_did] : kCases) {
    using spanish::Tense;
    EXPECT_EQ(spanish::conjugate(verb(english), Tense::present, Number::singular), he);
    EXPECT_EQ(spanish::conjugate(verb(english), Tense::present, Number::plural), they);
    EXPECT_EQ(spanish::conjugate(verb(english), Tense::preterite, Number::singular), he_did);
    EXPECT_EQ(spanish::conjugate(verb(english), Tense::preterite, Number::plural), they_did);
    EXPECT_EQ(verb(english).special.aspect, Aspect::event);
  }
}

TEST(SpanishWords, StatesHaveAnImperfect) {
  constexpr Conjugated kCases[] = {
      {"want", "quiere", "quieren", "quería", "querían"},
      {"know", "conoce", "conocen", "conocía", "conocían"},
      {"need", "necesita", "necesitan", "necesitaba", "necesitaban"},
      {"love", "ama", "aman", "amaba", "amaban"},
      {"fear", "teme", "temen", "temía", "temían"},
      {"live", "vive", "viven", "vivía", "vivían"},
      {"remember", "recuerda", "recuerdan", "recordaba", "recordaban"},
  };
  for (const auto& [english, he, they, he_did, they_did] : kCases) {
    using spanish::Tense;
    EXPECT_EQ(spanish::conjugate(verb(english), Tense::present, Number::singular), he);
    EXPECT_EQ(spanish::conjugate(verb(english), Tense::present, Number::plural), they);
    EXPECT_EQ(spanish::conjugate(verb(english), Tense::imperfect, Number::singular), he_did);
    EXPECT_EQ(spanish::conjugate(verb(english), Tense::imperfect, Number::plural), they_did);
    EXPECT_EQ(verb(english).special.aspect, Aspect::state);
  }
}

TEST(SpanishWords, SerAndEstar) {
  using spanish::Tense;
  EXPECT_EQ(spanish::copula(Copula::ser, Tense::present, Number::singular), "es");
  EXPECT_EQ(spanish::copula(Copula::ser, Tense::imperfect, Number::plural), "eran");
  EXPECT_EQ(spanish::copula(Copula::estar, Tense::present, Number::plural), "están");
  EXPECT_EQ(spanish::copula(Copula::estar, Tense::imperfect, Number::singular), "estaba");
  EXPECT_EQ(spanish::preposition(verb("enter")), "en");
}

TEST(SpanishWords, AndAvoidsTheSoundOfI) {
  EXPECT_EQ(spanish::conjunction_and("hija"), "e");
  EXPECT_EQ(spanish::conjunction_and("inteligente"), "e");
  EXPECT_EQ(spanish::conjunction_and("hielo"), "y");
  EXPECT_EQ(spanish::conjunction_and("hotel"), "y");
}

}  // namespace
}  // namespace heed::grammar
