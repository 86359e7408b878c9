// SPDX-License-Identifier: Apache-2.0
#include "heed/grammar/lexicon.h"

namespace heed::grammar {

namespace {

using namespace trait;

constexpr Aspect kState = Aspect::state;
constexpr Verb::Special kSleep{.past = "slept", .present = "duerm", .preterite = "durm"};

constexpr Traits kGoods = kClothes | kFurniture | kDevice | kInstrument | kContainer | kValuable | kFood;
constexpr Traits kBelongings = kClothes | kDevice | kValuable | kText | kTool | kMissile;
constexpr Traits kThings = kBelongings | kFurniture | kVehicle | kFragile | kInstrument;
constexpr Traits kSights = kBuilding | kTown | kLand | kWater | kHeight | kPlant;

constexpr Verb kVerbs[] = {
    // moving about
    {"cross", "cruzar", kHuman | kBeast | kVehicle, kWay | kWater},
    {"climb", "escalar", kHuman | kClimber, kHeight},
    {"enter", "entrar en", kAnimate, kBuilding | kRoom},
    {"visit", "visitar", kHuman, kBuilding | kTown | kLand | kKin},
    {"follow", "seguir", kAnimate, kAnimate | kVehicle, {.present = "sigu", .preterite = "sigu"}},
    {"chase", "perseguir", kAnimal, kAnimate, {.present = "persigu", .preterite = "persigu"}},
    {"drive", "conducir", kHuman, kDriven, {.past = "drove", .preterite = "conduj", .strong = true}},
    {"run", "correr", kHuman | kBeast, 0, {.past = "ran"}},
    {"walk", "caminar", kHuman | kBeast},
    {"jump", "saltar", kHuman | kBeast},
    {"swim in", "nadar en", kHuman | kBeast, kWater, {.past = "swam"}},
    {"fly", "volar", kBird, 0, {.past = "flew", .present = "vuel"}},
    {"fall", "caer", kFood | kBelongings | kFragile, 0, {.past = "fell"}},
    {"arrive", "llegar", kHuman | kVehicle},
    // what bodies do
    {"eat", "comer", kAnimate, kFood, {.past = "ate"}},
    {"drink", "beber", kAnimate, kDrink, {.past = "drank"}},
    {"sleep", "dormir", kAnimate, 0, kSleep},
    {"sleep on", "dormir en", kHuman | kBeast, kSeat, kSleep},
    {"rest", "descansar", kAnimate},
    {"sing", "cantar", kHuman | kBird, 0, {.past = "sang"}},
    {"dance", "bailar", kHuman},
    {"cry", "llorar", kHuman},
    {"work", "trabajar", kHuman},
    {"study", "estudiar", kHuman},
    {"bite", "morder", kAnimal, kAnimate, {.past = "bit", .present = "muerd"}},
    {"touch", "tocar", kAnimate, kAnimate | kThings | kPlant},
    {"kiss", "besar", kHuman, kHuman},
    {"hug", "abrazar", kHuman, kHuman, {.past = "hugged"}},
    // perceiving and thinking
    {"see", "ver", kAnimate, kAnimate | kThings | kSights | kFood, {.past = "saw"}},
    {"hear", "oír", kAnimate, kHuman | kBird | kVehicle | kInstrument, {.past = "heard", .present = "oy"}},
    {"look at", "mirar", kAnimate, kAnimate | kThings | kSights},
    {"listen to", "escuchar", kAnimate, kHuman | kBird | kInstrument},
    {"find", "encontrar", kAnimate, kAnimate | kThings | kFood, {.past = "found", .present = "encuentr"}},
    {"look for", "buscar", kAnimate, kAnimate | kThings | kFood},
    {"remember", "recordar", kHuman, kHuman | kText | kSights, {.present = "recuerd", .aspect = kState}},
    {"forget", "olvidar", kHuman, kHuman | kText | kBelongings, {.past = "forgot"}},
    {"know", "conocer", kHuman, kHuman | kTown | kText | kBuilding, {.past = "knew", .aspect = kState}},
    {"love", "amar", kHuman, kAnimate | kTown | kInstrument, {.aspect = kState}},
    {"hate", "odiar", kHuman, kAnimate | kTown | kFood | kClothes | kVehicle, {.aspect = kState}},
    {"fear", "temer", kAnimate, kAnimate, {.aspect = kState}},
    {"want", "querer", kHuman, kThings | kFood, {.present = "quier", .aspect = kState}},
    {"need", "necesitar", kHuman, kThings | kFood | kHuman, {.aspect = kState}},
    {"read", "leer", kHuman, kText, {.past = "read"}},
    {"write", "escribir", kHuman, kText, {.past = "wrote"}},
    {"translate", "traducir", kHuman, kText, {.preterite = "traduj", .strong = true}},
    {"understand", "entender", kHuman, kText | kHuman, {.past = "understood", .present = "entiend"}},
    // people with people and animals
    {"help", "ayudar", kHuman, kAnimate},
    {"greet", "saludar", kHuman, kHuman},
    {"call", "llamar", kHuman, kHuman},
    {"feed", "alimentar", kHuman, kAnimal, {.past = "fed"}},
    {"wait for", "esperar", kHuman, kHuman | kDriven},
    // having
    {"buy", "comprar", kHuman, kGoods | kVehicle | kText | kBuilding | kDrink, {.past = "bought"}},
    {"sell", "vender", kHuman, kGoods | kVehicle | kText | kBuilding | kDrink, {.past = "sold"}},
    {"steal", "robar", kHuman, kBelongings | kFood, {.past = "stole"}},
    {"lose", "perder", kHuman, kBelongings, {.past = "lost", .present = "pierd"}},
    {"hide", "esconder", kHuman, kBelongings | kFood, {.past = "hid"}},
    {"choose", "elegir", kHuman, kGoods | kVehicle | kText, {.past = "chose", .present = "elig", .preterite = "elig"}},
    {"receive", "recibir", kHuman, kBelongings | kInstrument},
    {"send", "enviar", kHuman, kText | kValuable | kClothes, {.past = "sent", .present = "enví"}},
    {"bring", "traer", kHuman, kBelongings | kFood | kDrink, {.past = "brought", .preterite = "traj", .strong = true}},
    {"carry", "llevar", kHuman | kBurden, kContainer | kMissile | kFurniture},
    {"leave", "dejar", kHuman, kBelongings | kFood | kDrink, {.past = "left"}},
    {"put", "poner", kHuman, kBelongings | kFood | kDrink, {.past = "put", .preterite = "pus", .strong = true}},
    {"push", "empujar", kHuman | kBurden, kVehicle | kFurniture},
    {"move", "mover", kHuman | kBurden, kFurniture | kContainer, {.present = "muev"}},
    {"lift", "levantar", kHuman | kBurden, kContainer | kMissile | kFurniture},
    {"throw", "lanzar", kHuman, kMissile, {.past = "threw"}},
    {"use", "usar", kHuman, kTool | kDevice | kVehicle},
    // working on things
    {"open", "abrir", kHuman, kOpening | kContainer, {.scale = "closing"}},
    {"close", "cerrar", kHuman, kOpening | kContainer, {.present = "cierr", .scale = "closing"}},
    {"break", "romper", kHuman | kMissile, kFragile, {.past = "broke", .scale = "working"}},
    {"repair", "reparar", kHuman, kDevice | kVehicle | kInstrument | kFurniture, {.scale = "working"}},
    {"clean", "limpiar", kHuman, kRoom | kFurniture | kContainer | kFragile | kOpening, {.scale = "dirt"}},
    {"wash", "lavar", kHuman, kClothes | kVehicle | kFragile | kProduce, {.scale = "dirt"}},
    {"paint", "pintar", kHuman, kBuilding | kFurniture | kOpening | kRoom, {.scale = "colour"}},
    {"draw", "dibujar", kHuman, kSights, {.past = "drew"}},
    {"build", "construir", kHuman, kBuilding | kWay, {.past = "built", .present = "construy", .scale = "age"}},
    {"sew", "coser", kHuman, kClothes, {.scale = "age"}},
    {"cook", "cocinar", kHuman, kMeal, {.scale = "heat"}},
    {"cut", "cortar", kHuman, kSolid | kPlant, {.past = "cut"}},
    {"fill", "llenar", kHuman, kContainer, {.scale = "filling"}},
    {"burn", "quemar", kHuman, kText | kFurniture | kClothes},
    {"attack", "atacar", kAnimate, kAnimate},
    {"live", "vivir", kAnimate, 0, {.aspect = kState}},
    {"wait", "esperar", kHuman},
};

}  // namespace

std::span<const Verb> verbs() { return kVerbs; }

}  // namespace heed::grammar
