// SPDX-License-Identifier: Apache-2.0
#include "heed/grammar/lexicon.h"

namespace heed::grammar {

namespace {

using namespace trait;

constexpr Copula S = Copula::ser, E = Copula::estar;
constexpr Position kBefore = Position::before_noun;
constexpr Adjective::Special kAbsolute{.gradable = false};

constexpr Traits kGoods = kClothes | kVehicle | kFurniture | kDevice | kInstrument | kContainer | kValuable | kTool;
constexpr Traits kMade =
    kClothes | kVehicle | kFurniture | kDevice | kContainer | kText | kBuilding | kInstrument | kTool;
constexpr Traits kSized = kAnimal | kBuilding | kTown | kRoom | kFurniture | kContainer | kVehicle | kLand | kWater |
                          kPlant | kOpening | kProduce | kMissile | kFragile;
constexpr Traits kSoiled = kWay | kWater | kRoom | kFurniture | kClothes | kVehicle | kFragile | kOpening;
constexpr Traits kColoured = kClothes | kVehicle | kFurniture | kOpening | kContainer | kFragile | kDevice;
constexpr Traits kSights = kBuilding | kTown | kLand | kWater | kHeight;

constexpr Adjective kAdjectives[] = {
    // states of the animate
    {"tired", "cansado", kAnimate, E, "energy"},
    {"weak", "débil", kAnimate, E, "energy"},
    {"strong", "fuerte", kAnimate, S, "energy"},
    {"sick", "enfermo", kAnimate, E, "health"},
    {"hungry", "hambriento", kAnimate, E, "appetite"},
    {"thirsty", "sediento", kAnimate, E, "appetite"},
    {"scared", "asustado", kAnimate, E, "courage"},
    {"brave", "valiente", kAnimate, S, "courage"},
    {"nervous", "nervioso", kAnimate, E, "mood"},
    {"sad", "triste", kAnimate, E, "mood"},
    {"happy", "contento", kAnimate, E, "mood"},
    {"angry", "enfadado", kAnimate, E, "mood"},
    {"lazy", "perezoso", kAnimate, S, "character"},
    {"intelligent", "inteligente", kAnimate, S, "character"},
    {"young", "joven", kYouth | kAnimal, S, "age", {.plural = "jóvenes"}},
    {"bored", "aburrido", kHuman, E, "mood"},
    {"busy", "ocupado", kHuman, E, "work"},
    {"hardworking", "trabajador", kHuman, S, "work", {.feminine = "trabajadora"}},
    {"rich", "rico", kHuman, S, "wealth"},
    {"poor", "pobre", kHuman, S, "wealth"},
    {"tall", "alto", kHuman, S, "size"},
    // age and size
    {"old", "viejo", kAdult | kAnimal | kMade | kWay, S, "age"},
    {"new", "nuevo", kMade, S, "age"},
    {"modern", "moderno", kBuilding | kDevice | kVehicle, S, "age"},
    {"big", "grande", kSized, S, "size"},
    {"small", "pequeño", kSized | kClothes | kValuable, S, "size"},
    {"long", "largo", kWay | kText, S, "length"},
    {"short", "corto", kWay | kText, S, "length"},
    {"wide", "ancho", kWay | kWater, S, "size"},
    {"narrow", "estrecho", kWay | kOpening, S, "size"},
    {"deep", "profundo", kWater, S, "depth"},
    {"high", "alto", kHeight, S, "size"},
    {"heavy", "pesado", kFurniture | kContainer | kVehicle | kMissile, S, "weight"},
    {"light", "ligero", kContainer | kMissile | kClothes, S, "weight"},
    {"thick", "grueso", kOpening | kFragile, S, "thickness"},
    {"thin", "fino", kOpening | kFragile, S, "thickness"},
    // condition
    {"hard", "duro", kSolid, E, "hardness"},
    {"soft", "blando", kSeat, S, "hardness"},
    {"comfortable", "cómodo", kSeat | kClothes, S, "comfort"},
    {"fragile", "frágil", kFragile, S, "strength"},
    {"broken", "roto", kDevice | kFragile | kFurniture | kInstrument, E, "working", kAbsolute},
    {"dirty", "sucio", kSoiled, E, "dirt"},
    {"clean", "limpio", kSoiled, E, "dirt"},
    {"wet", "mojado", kWay | kClothes | kSeat, E, "dampness"},
    {"dark", "oscuro", kRoofed, S, "light"},
    {"closed", "cerrado", kOpening | kContainer | kBuilding, E, "closing", kAbsolute},
    {"open", "abierto", kOpening | kContainer | kBuilding, E, "closing", kAbsolute},
    {"empty", "vacío", kContainer | kRoom, E, "filling", kAbsolute},
    {"full", "lleno", kContainer | kRoom, E, "filling"},
    // taste
    {"cold", "frío", kMeal | kDrink | kWater | kRoom, E, "heat"},
    {"hot", "caliente", kMeal | kDrink, E, "heat"},
    {"sweet", "dulce", kProduce | kDrink, E, "taste"},
    {"bitter", "amargo", kProduce | kDrink, E, "taste"},
    {"salty", "salado", kMeal | kSavoury, E, "taste"},
    {"delicious", "delicioso", kFood | kDrink, E, "taste"},
    {"rotten", "podrido", kProduce, E, "taste", kAbsolute},
    // worth
    {"expensive", "caro", kGoods | kFood, S, "price"},
    {"cheap", "barato", kGoods | kFood, S, "price"},
    {"valuable", "valioso", kValuable, S, "price"},
    {"beautiful", "hermoso", kFemale | kSights | kClothes | kPlant | kValuable | kInstrument, S, "beauty"},
    {"ugly", "feo", kBuilding | kClothes | kFurniture | kVehicle, S, "beauty"},
    {"famous", "famoso", kRenown | kSights, S, "fame"},
    {"important", "importante", kRenown | kText | kTown, S, "fame"},
    {"interesting", "interesante", kText | kTown | kBuilding, S, "interest"},
    {"boring", "aburrido", kText | kTown, S, "interest"},
    {"difficult", "difícil", kText, S, "difficulty"},
    {"easy", "fácil", kText, S, "difficulty"},
    {"dangerous", "peligroso", kWay | kWater | kHeight, S, "danger"},
    {"safe", "seguro", kWay | kVehicle, S, "danger"},
    {"fast", "rápido", kAnimal | kVehicle, S, "speed"},
    {"slow", "lento", kAnimal | kVehicle, S, "speed"},
    {"noisy", "ruidoso", kVehicle | kDevice | kWay, S, "noise"},
    // colours
    {"red", "rojo", kColoured | kPlant, S, "colour", kAbsolute},
    {"yellow", "amarillo", kColoured | kPlant, S, "colour", kAbsolute},
    {"green", "verde", kColoured, S, "colour", kAbsolute},
    {"blue", "azul", kColoured, S, "colour", kAbsolute},
    {"white", "blanco", kColoured | kAnimal, S, "colour", kAbsolute},
    {"black", "negro", kColoured | kAnimal, S, "colour", kAbsolute},
    {"brown", "marrón", kColoured | kAnimal, S, "colour", kAbsolute},
    // before the noun
    {"good", "bueno", kHuman | kText | kDevice, S, "quality", {.position = kBefore, .short_form = "buen"}},
    {"bad", "malo", kRenown | kText, S, "quality", {.position = kBefore, .short_form = "mal"}},
    {"great", "grande", kRenown | kTown | kBuilding, S, "quality", {false, kBefore, true, "gran", true}},
    {"first", "primero", kAny, S, "order", {false, kBefore, true, "primer"}},
    {"second", "segundo", kAny, S, "order", {false, kBefore, true}},
    {"third", "tercero", kAny, S, "order", {false, kBefore, true, "tercer"}},
    {"last", "último", kAny, S, "order", {false, kBefore, true}},
    {"other", "otro", kAny, S, "order", {false, kBefore, true}},
};

}  // namespace

std::span<const Adjective> adjectives() { return kAdjectives; }

}  // namespace heed::grammar
