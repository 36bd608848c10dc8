// Light or dark: what the system prefers, until the person chooses.

const wanted = matchMedia('(prefers-color-scheme: dark)');

export class Theme {
  constructor(changed) {
    this.changed = changed;
    this.choice = remembered();
    wanted.addEventListener('change', () => this.apply());
    this.apply();
  }

  get dark() {
    return this.choice ? this.choice === 'dark' : wanted.matches;
  }

  toggle() {
    this.choice = this.dark ? 'light' : 'dark';
    try {
      localStorage.setItem('theme', this.choice);
    } catch {
      // Without storage the choice lasts as long as the page.
    }
    this.apply();
  }

  apply() {
    document.documentElement.dataset.theme = this.dark ? 'dark' : 'light';
    this.changed();
  }
}

function remembered() {
  try {
    return localStorage.getItem('theme') ?? '';
  } catch {
    return '';
  }
}
