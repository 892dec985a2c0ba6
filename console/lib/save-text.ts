/** A text leaves the page as a download and is never shown as a page of the console's origin. */
export function saveText(name: string, text: string): void {
  saveBlob(name, new Blob([text], { type: "application/octet-stream" }));
}

export function saveBlob(name: string, blob: Blob): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
