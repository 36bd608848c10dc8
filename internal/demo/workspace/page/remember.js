// Values that this browser keeps between visits. Without storage, as in a private window, no value is kept.

function read(key) {
  try {
    return localStorage.getItem(key) ?? '';
  } catch {
    return '';
  }
}

function write(key, value) {
  try {
    if (value) localStorage.setItem(key, value);
    else localStorage.removeItem(key);
  } catch {
    // Nothing to do, because the page works without the stored value.
  }
}

export const rememberedPerson = () => read('person');
export const rememberPerson = (user) => write('person', user);

export const rememberedTheme = () => read('theme');
export const rememberTheme = (theme) => write('theme', theme);

const hintKey = (hint) => `hint/${hint.title}`;
export const wasDismissed = (hint) => read(hintKey(hint)) === 'dismissed';
export const rememberHint = (hint, open) => write(hintKey(hint), open ? '' : 'dismissed');
