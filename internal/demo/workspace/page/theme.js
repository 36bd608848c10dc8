// Sets the light or the dark theme. The system's preference applies until the person chooses a theme.

import { rememberedTheme, rememberTheme } from './remember.js';

const wanted = matchMedia('(prefers-color-scheme: dark)');

export class Theme {
  constructor(changed) {
    this.changed = changed;
    this.choice = rememberedTheme();
    wanted.addEventListener('change', () => this.apply());
    this.apply();
  }

  get dark() {
    return this.choice ? this.choice === 'dark' : wanted.matches;
  }

  toggle() {
    this.choice = this.dark ? 'light' : 'dark';
    rememberTheme(this.choice);
    this.apply();
  }

  apply() {
    document.documentElement.dataset.theme = this.dark ? 'dark' : 'light';
    this.changed();
  }
}
