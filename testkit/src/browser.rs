//! A browser without a window, for tests of pages.

use std::path::Path;
use std::process::Command;

/// A script that adds to `faults` the addresses below `root` that are broken over lines, or cut by the place that they are in.
pub const ADDRESSES: &str = r"
    {
        const texts = root.ownerDocument.createTreeWalker(root.ownerDocument.body, NodeFilter.SHOW_TEXT);
        for (let text = texts.nextNode(); text; text = texts.nextNode()) {
            if (text.parentElement.closest('svg, option, style, script')) continue;
            for (const found of text.data.matchAll(/\d+\.\d+\.\d+\.\d+|[0-9a-f]*:[0-9a-f:]*:[0-9a-f]*[a-f][0-9a-f:]*/g)) {
                const range = root.ownerDocument.createRange();
                range.setStart(text, found.index);
                range.setEnd(text, found.index + found[0].length);
                const boxes = range.getClientRects();
                if (boxes.length > 1) faults.push('broken ' + found[0]);
                const around = text.parentElement.closest('.scroll, body').getBoundingClientRect();
                for (const box of boxes)
                    if (box.left < around.left - 1 || box.right > around.right + 1) faults.push('cut ' + found[0]);
            }
        }
    }";

/// Opens a page with these flags and returns the browser's standard output; its profile is in `folder`. Prints a `SKIPPED`
/// line and returns `None` without a browser.
///
/// # Panics
/// If the browser fails.
pub fn browse(folder: &Path, flags: &[&str], page: &str) -> Option<String> {
    let browser = ["chromium", "chromium-browser"].into_iter().find(|name| {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&paths).any(|folder| folder.join(name).is_file())
    });
    let Some(browser) = browser else {
        eprintln!("SKIPPED: chromium is not installed");
        return None;
    };
    let output = Command::new("timeout")
        .args(["120", browser, "--headless=new", "--no-sandbox"])
        .args(["--disable-gpu", "--disable-dev-shm-usage"])
        .arg(format!("--user-data-dir={}", folder.join("browser").display()))
        .args(flags)
        .arg(page)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Shows a page in a frame of this width and runs a script on its `root`, which is to return a text. Returns the text.
///
/// # Panics
/// If the browser fails or the script does not end.
pub fn examine(folder: &Path, page: &Path, width: u32, script: &str) -> Option<String> {
    let html = std::fs::read_to_string(page).unwrap();
    let inner = html.replace('&', "&amp;").replace('"', "&quot;");
    let outer = folder.join("outer.html");
    let text = format!(
        "<!doctype html><body><iframe width=\"{width}\" height=\"900\" srcdoc=\"{inner}\"></iframe><script>\
         let frame = document.querySelector('iframe'); frame.addEventListener('load', () => {{ \
         let root = frame.contentDocument.documentElement; \
         document.title = 'result: ' + (() => {{ {script} }})(); }});</script>"
    );
    std::fs::write(&outer, text).unwrap();
    let address = format!("file://{}", outer.display());
    let dom = browse(folder, &["--virtual-time-budget=5000", "--dump-dom"], &address)?;
    let (_, title) = dom.split_once("<title>result: ").expect("a title set by the script");
    Some(title.split("</title>").next().unwrap_or_default().to_owned())
}
