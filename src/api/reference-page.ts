/** A page that renders openapi.json in the browser; no dependency, nothing fetched from elsewhere. */
export const referencePage = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Berth API</title>
<style>
:root{color-scheme:light dark;font:15px/1.5 system-ui,sans-serif}body{max-width:62rem;margin:0 auto;padding:1.5rem}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin:2rem 0 .4rem;text-transform:capitalize}input{width:100%;padding:.5rem;font:inherit;box-sizing:border-box}
details{border-top:1px solid #8884;padding:.35rem 0}summary{cursor:pointer;display:flex;flex-wrap:wrap;gap:0 .7rem;align-items:baseline}
summary>*{min-width:0;overflow-wrap:anywhere}summary>b{flex:none}summary>code{max-width:calc(100% - 4.7rem)}
code,pre{font:13px/1.45 ui-monospace,monospace}pre{overflow:auto;overflow-wrap:normal;background:#8881;padding:.7rem;border-radius:6px;max-height:24rem}
b{display:inline-block;width:4rem;font:600 12px ui-monospace,monospace}.GET{color:light-dark(#17694a,#5c9)}.POST{color:light-dark(#1d5fa8,#7af)}.PUT{color:light-dark(#8a5300,#eb5)}.DELETE{color:light-dark(#b22,#f88)}small{opacity:.8}a{color:light-dark(#1d5fa8,#8bf)}
</style></head><body>
<h1>Berth API</h1><p><small>Rendered from <a href="/openapi.json">/openapi.json</a>. Send <code>Authorization: Bearer &lt;API key&gt;</code>; choose the behaviour with <code>Service-Version</code>.</small></p>
<input id="q" placeholder="Filter by path, name or scope" autofocus><main id="list"></main>
<script>
const el=(tag,attrs={},...kids)=>{const node=Object.assign(document.createElement(tag),attrs);node.append(...kids);return node};
fetch("/openapi.json").then((answer)=>answer.json()).then((api)=>{
  const named=(key,value)=>value?.$ref?api.components.schemas[value.$ref.split("/").pop()]:value;
  const json=(value)=>el("pre",{textContent:JSON.stringify(value,named,2)});
  const rows=Object.entries(api.paths).flatMap(([path,methods])=>Object.entries(methods).map(([method,operation])=>({path,method:method.toUpperCase(),operation})));
  const draw=()=>{
    const needle=document.getElementById("q").value.toLowerCase(),groups=new Map();
    for(const row of rows)if((row.path+row.operation.operationId+(row.operation["x-scope"]??"")).toLowerCase().includes(needle)){const tag=row.operation.tags[0];groups.set(tag,[...(groups.get(tag)??[]),row])}
    document.getElementById("list").replaceChildren(...[...groups].flatMap(([tag,list])=>[el("h2",{textContent:tag}),...list.map(show)]));
  };
  const show=({path,method,operation})=>{
    const box=el("details",{},el("summary",{},el("b",{className:method,textContent:method}),el("code",{textContent:path}),el("small",{textContent:operation.summary})));
    box.addEventListener("toggle",()=>{if(box.childElementCount>1)return;
      box.append(el("p",{},el("small",{textContent:operation.operationId+(operation["x-scope"]?" · scope "+operation["x-scope"]:"")+" · role "+operation["x-role"]})));
      if(operation.parameters.length)box.append(el("small",{textContent:"Parameters"}),json(operation.parameters.map(({name,in:place,required,schema})=>({name,in:place,required,...schema}))));
      if(operation.requestBody)box.append(el("small",{textContent:"Body"}),json(Object.values(operation.requestBody.content)[0].schema));
      const ok=Object.values(operation.responses)[0];if(ok.content)box.append(el("small",{textContent:"Answer"}),json(ok.content["application/json"].schema));
    });return box};
  document.getElementById("q").addEventListener("input",draw);draw();
});
</script></body></html>`;
