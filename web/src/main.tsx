import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './app.js';
import { createPlatform, PlatformContext } from './platform.js';
import { applyTheme, storedTheme } from './theme.js';
import 'uplot/dist/uPlot.min.css';
import './styles.css';

applyTheme(storedTheme());
const root = document.getElementById('root');
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <PlatformContext value={createPlatform(window.location.origin)}>
        <App />
      </PlatformContext>
    </StrictMode>,
  );
}
