// Slack's names for emoji. Unknown names are shown as they were typed.

const table = `
+1 👍|thumbsup 👍|-1 👎|thumbsdown 👎|100 💯|1234 🔢|abacus 🧮|airplane ✈️|alarm_clock ⏰|alien 👽|ambulance 🚑|anchor ⚓|angry 😠|apple 🍎
arrow_down ⬇️|arrow_forward ▶️|arrow_left ⬅️|arrow_right ➡️|arrow_right_hook ↪️|arrow_up ⬆️|arrow_up_down ↕️|arrows_counterclockwise 🔄|leftwards_arrow_with_hook ↩️
astonished 😲|ballot_box_with_check ☑️|bank 🏦|bar_chart 📊|beer 🍺|beers 🍻|bell 🔔|bike 🚲|birthday 🎂|black_circle ⚫|black_square_button 🔲|blue_heart 💙|blush 😊|bomb 💣|book 📖|bookmark 🔖|books 📚|boom 💥|bow 🙇|brain 🧠|briefcase 💼|bug 🐛|building_construction 🏗️|bulb 💡|bust_in_silhouette 👤|busts_in_silhouette 👥
cake 🍰|calendar 📆|spiral_calendar_pad 🗓️|call_me_hand 🤙|camera 📷|cat 🐱|chart_with_downwards_trend 📉|chart_with_upwards_trend 📈|checkered_flag 🏁|christmas_tree 🎄|clap 👏|clipboard 📋|clock1 🕐|clock3 🕒|closed_lock_with_key 🔐|cloud ☁️|coffee ☕|coin 🪙|compass 🧭|computer 💻|confetti_ball 🎊|confused 😕|construction 🚧|cop 👮|cop_emoji 👮|credit_card 💳|crossed_fingers 🤞|crown 👑|cry 😢|crystal_ball 🔮|cyclone 🌀
date 📅|dart 🎯|detective 🕵️|dog 🐶|dollar 💵|door 🚪|droplet 💧|egg 🥚|elephant 🐘|email 📧|e-mail 📧|envelope ✉️|euro 💶|exclamation ❗|heavy_exclamation_mark ❗|grey_exclamation ❕|bangbang ‼️|eyes 👀|face_palm 🤦|facepalm 🤦|face_with_monocle 🧐|face_with_rolling_eyes 🙄|factory 🏭|fast_forward ⏩|file_folder 📁|fire 🔥|fire_engine 🚒|fist 👊|flag-us 🇺🇸|flag-gb 🇬🇧|flag-de 🇩🇪|fountain_pen 🖋️|four_leaf_clover 🍀|frowning 😦
gear ⚙️|gem 💎|ghost 👻|gift 🎁|globe_with_meridians 🌐|earth_americas 🌎|earth_africa 🌍|green_circle 🟢|large_green_circle 🟢|green_heart 💚|grin 😁|grinning 😀|guardsman 💂|hammer 🔨|hammer_and_wrench 🛠️|handshake 🤝|heart ❤️|heart_eyes 😍|heavy_check_mark ✔️|heavy_dollar_sign 💲|heavy_minus_sign ➖|heavy_multiplication_x ✖️|heavy_plus_sign ➕|heavy_division_sign ➗|hourglass ⌛|hourglass_flowing_sand ⏳|house 🏠|hugging_face 🤗|ice_cream 🍨|id 🆔|inbox_tray 📥|incoming_envelope 📨|information_source ℹ️|innocent 😇|interrobang ⁉️
joy 😂|judge 🧑‍⚖️|key 🔑|keyboard ⌨️|label 🏷️|laptop 💻|large_blue_circle 🔵|large_orange_circle 🟠|large_yellow_circle 🟡|large_red_circle 🔴|large_purple_circle 🟣|large_brown_circle 🟤|large_green_square 🟩|large_red_square 🟥|large_yellow_square 🟨|large_orange_square 🟧|large_blue_square 🟦|large_orange_diamond 🔶|large_blue_diamond 🔷|small_blue_diamond 🔹|small_orange_diamond 🔸|small_red_triangle 🔺|small_red_triangle_down 🔻|laughing 😆|lightning ⚡|zap ⚡|link 🔗|lock 🔒|lock_with_ink_pen 🔏|unlock 🔓|loud_sound 🔊|loudspeaker 📢|mag 🔍|mag_right 🔎|mailbox 📫|mega 📣|memo 📝|pencil 📝|pencil2 ✏️|microscope 🔬|money_with_wings 💸|moneybag 💰|moon 🌙|mortar_board 🎓|muscle 💪|mute 🔇
name_badge 📛|nerd_face 🤓|neutral_face 😐|new 🆕|newspaper 📰|no_bell 🔕|no_entry ⛔|no_entry_sign 🚫|no_good 🙅|no_mouth 😶|notebook 📓|o ⭕|ocean 🌊|octagonal_sign 🛑|stop_sign 🛑|office 🏢|ok 🆗|ok_hand 👌|open_file_folder 📂|open_mouth 😮|orange_heart 🧡|outbox_tray 📤|owl 🦉|package 📦|page_facing_up 📄|page_with_curl 📃|paperclip 📎|party 🥳|partying_face 🥳|passport_control 🛂|pause_button ⏸️|double_vertical_bar ⏸️|pensive 😔|performing_arts 🎭|person_shrugging 🤷|shrug 🤷|person_raising_hand 🙋|raising_hand 🙋|phone ☎️|pill 💊|pizza 🍕|point_down 👇|point_left 👈|point_right 👉|point_up ☝️|point_up_2 👆|police_car 🚓|postbox 📮|pray 🙏|printer 🖨️|purple_heart 💜|pushpin 📌|round_pushpin 📍|put_litter_in_its_place 🚮|puzzle_piece 🧩|jigsaw 🧩
question ❓|grey_question ❔|rabbit 🐰|racehorse 🐎|rage 😡|rainbow 🌈|raised_hand ✋|hand ✋|raised_hands 🙌|receipt 🧾|recycle ♻️|red_circle 🔴|relieved 😌|repeat 🔁|rewind ⏪|robot_face 🤖|rocket 🚀|rolling_on_the_floor_laughing 🤣|rose 🌹|rotating_light 🚨|runner 🏃|running 🏃|sailboat ⛵|salt 🧂|scales ⚖️|school 🏫|scissors ✂️|scream 😱|scroll 📜|seedling 🌱|see_no_evil 🙈|shield 🛡️|ship 🚢|shopping_bags 🛍️|shopping_trolley 🛒|siren 🚨|skull 💀|sleeping 😴|slightly_smiling_face 🙂|slightly_frowning_face 🙁|smile 😄|smiley 😃|smirk 😏|snail 🐌|snowflake ❄️|sob 😭|sos 🆘|sparkle ❇️|sparkles ✨|speech_balloon 💬|star ⭐|star2 🌟|stopwatch ⏱️|sunglasses 😎|sunny ☀️|sweat 😓|sweat_smile 😅
tada 🎉|tea 🍵|telephone_receiver 📞|telescope 🔭|test_tube 🧪|thinking_face 🤔|thinking 🤔|thought_balloon 💭|three_button_mouse 🖱️|ticket 🎫|timer_clock ⏲️|tools 🛠️|tophat 🎩|traffic_light 🚥|vertical_traffic_light 🚦|triangular_flag_on_post 🚩|trophy 🏆|truck 🚚|turtle 🐢|umbrella ☔|upside_down_face 🙃|v ✌️|vs 🆚|warning ⚠️|wastebasket 🗑️|watch ⌚|wave 👋|white_check_mark ✅|white_circle ⚪|white_large_square ⬜|black_large_square ⬛|white_square_button 🔳|wine_glass 🍷|wink 😉|woman-shrugging 🤷‍♀️|man-shrugging 🤷‍♂️|wrench 🔧|writing_hand ✍️|x ❌|negative_squared_cross_mark ❎|yellow_heart 💛|yum 😋|zipper_mouth_face 🤐|zzz 💤
one 1️⃣|two 2️⃣|three 3️⃣|four 4️⃣|five 5️⃣|six 6️⃣|seven 7️⃣|eight 8️⃣|nine 9️⃣|zero 0️⃣|keycap_ten 🔟`;

const byName = new Map(table.split(/[|\n]/).filter(Boolean).map((entry) => entry.split(' ')));

const skinTones = { 2: '🏻', 3: '🏼', 4: '🏽', 5: '🏾', 6: '🏿' };

// emojiFor returns undefined for an unknown name. tone is Slack's skin tone, 2 to 6.
export function emojiFor(name, tone) {
  const base = byName.get(name);
  if (!base || !tone) return base;
  return base.replace(/\ufe0f$/, '') + (skinTones[tone] ?? '');
}

const shortcode = /:([a-z0-9_+'-]+)(?:::skin-tone-([2-6]))?:/g;

// withEmoji replaces the known :shortcodes: of a plain text.
export function withEmoji(text) {
  return text.replace(shortcode, (whole, name, tone) => emojiFor(name, tone) ?? whole);
}

export function emojiNames() {
  return [...byName.keys()];
}
