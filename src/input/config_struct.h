/* keys.def expanded: the ids of the keys and struct config. Included by config.h only. */
#ifndef INPUT_CONFIG_STRUCT_H
#define INPUT_CONFIG_STRUCT_H

#define ONCE
#define MANY
#define LATER(group, name)
#define LATER_GROUP(name, times, help)

/* KEY_parallel_tp and so on, in the order of keys.def. */
enum config_key {
#define GROUP(name, times, help)
#define END_GROUP(name, times)
#define KEY(group, name, type, def, lo, hi, unit, resume, choices, aliases, help) \
    KEY_##group##_##name,
#include "input/keys.def"
#undef KEY
#undef GROUP
#undef END_GROUP
    CONFIG_KEYS
};

#define CONFIG_MEMBER_INT(name)    int64_t name;
#define CONFIG_MEMBER_REAL(name)   double name;
#define CONFIG_MEMBER_BOOL(name)   int name;
#define CONFIG_MEMBER_TEXT(name)   char name[CONFIG_TEXT];
#define CONFIG_MEMBER_CHOICE(name) int name;
#define CONFIG_MEMBER_INTS(name)   struct config_ints name;
#define CONFIG_MEMBER_TEXTS(name)  struct config_texts name;

struct config_place {
    int line, column; /* 1..; line 0: not given; line < 0: by --set */
};

/* One block without pointers: it is broadcast as it is. */
struct config {
#define GROUP(name, times, help) struct {
#define END_GROUP(name, times) \
    }                          \
    name;
#define KEY(group, name, type, def, lo, hi, unit, resume, choices, aliases, help) \
    CONFIG_MEMBER_##type(name)
#include "input/keys.def"
#undef KEY
#undef GROUP
#undef END_GROUP
    unsigned char given[CONFIG_KEYS];
    struct config_place place[CONFIG_KEYS];
    char literal[CONFIG_KEYS]
                [CONFIG_LITERAL]; /* of a real as the user wrote it; "": too long, or none */
    char deck[CONFIG_DECK];       /* name of the file, for messages */
};

#undef LATER
#undef LATER_GROUP
#undef ONCE
#undef MANY
#endif
