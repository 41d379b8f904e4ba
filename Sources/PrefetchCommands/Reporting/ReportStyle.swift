/// How a report looks: in the light and in the dark, on a telephone and on paper.
enum ReportStyle {
    /// The style sheet.
    static let sheet: HTML = """
        :root{--page:#f6f7f9;--card:#fff;--text:#1b2330;--soft:#5b6675;--line:#e2e6ec;--track:#edf0f4;--bad:#b3261e;
        --good:#1a7f4b;--held:#8a5a00;--k1:#3b6fd8;--k2:#2a9d8f;--k3:#8fa7c9;--k4:#d9480f;--k5:#e8930c;--k6:#c2255c;--k7:#9c5bd1;
        --k8:#a08c72;--k9:#7a828d;--k10:#e58fb3}
        @media (prefers-color-scheme:dark){:root{--page:#11151b;--card:#1a2029;--text:#e6eaf0;--soft:#98a4b3;--line:#2c3542;
        --track:#262e3a;--bad:#ff8a80;--good:#6fd3a0;--held:#f2c063;--k1:#6c9bff;--k2:#4cc3b3;--k3:#7d93b5;--k4:#ff7a45;--k5:#f5b041;
        --k6:#f06595;--k7:#c08cf0;--k8:#c2ad90;--k9:#8b95a3;--k10:#f9b4cf}}
        *{box-sizing:border-box}
        body{margin:0;background:var(--page);color:var(--text);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",
        "Liberation Sans",sans-serif;font-variant-numeric:tabular-nums;-webkit-text-size-adjust:100%}
        main,footer{max-width:1120px;margin:0 auto;padding:0 24px}
        header{padding:36px 0 4px}
        h1{font-size:28px;line-height:1.25;margin:0;overflow-wrap:anywhere;letter-spacing:-.01em}
        h2{font-size:17px;margin:0 0 2px}
        p{margin:0}
        .facts{color:var(--soft);margin-top:6px;overflow-wrap:anywhere}
        .facts span+span::before{content:"·";padding:0 .5em}
        .note,small,figcaption,footer{color:var(--soft)}
        .note{margin:0 0 14px;font-size:14px}
        header .note{margin:8px 0 0}
        small{font-size:12.5px}
        .state{font-size:13px;font-weight:600;letter-spacing:.02em;padding:3px 10px;border:1px solid;border-radius:99px;vertical-align:5px;
        margin-left:6px;white-space:nowrap;color:var(--k1)}
        .state.done{color:var(--good)}.state.cancelled{color:var(--bad)}.state.held{color:var(--held)}
        section,.tile{background:var(--card);border:1px solid var(--line);border-radius:12px}
        section{padding:20px 22px 22px;margin:16px 0}
        .tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(136px,1fr));gap:12px;margin:20px 0 16px}
        .tile{padding:14px 18px}
        .tile dt{color:var(--soft);font-size:13px}
        .tile dd{margin:0;font-size:clamp(20px,2.6vw,25px);font-weight:650;line-height:1.3;letter-spacing:-.01em;
        white-space:nowrap}
        .tile small{display:block;white-space:normal;font-weight:400;letter-spacing:0}
        .tile.bad dd{color:var(--bad)}.tile.bad small{color:var(--soft)}
        section .tiles{margin:0 0 18px}section .tile{background:var(--page);border-color:transparent}
        .stack{display:flex;gap:2px;height:26px;border-radius:7px;overflow:hidden;background:var(--track)}
        .stack i{flex:1 1 0;min-width:3px}
        .legend{list-style:none;margin:14px 0 0;padding:0;display:flex;flex-wrap:wrap;gap:6px 24px}
        .legend i{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:7px}
        .k1{background:var(--k1)}.k2{background:var(--k2)}.k3{background:var(--k3)}.k4{background:var(--k4)}.k5{background:var(--k5)}
        .k6{background:var(--k6)}.k7{background:var(--k7)}.k8{background:var(--k8)}.k9{background:var(--k9)}.k10{background:var(--k10)}
        .none{background:var(--track)}.legend .none{border:1px solid var(--soft)}
        .two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr));gap:22px 36px;align-items:start}
        figure{margin:0;min-width:0}
        figcaption{font-size:13.5px;margin-bottom:8px}
        svg{display:block;width:100%;height:auto;overflow:visible}
        svg text{fill:var(--soft);font-size:11.5px}
        svg .grid{stroke:var(--line)}svg .axis{stroke:var(--soft)}
        svg .area{fill:var(--k1);opacity:.16}svg .line{fill:none;stroke:var(--k1);stroke-width:1.8;stroke-linejoin:round}
        .columns{display:flex;gap:5px;height:210px;align-items:stretch}
        .columns div{flex:1;display:flex;flex-direction:column;justify-content:flex-end;text-align:center;min-width:0}
        .columns i{border-radius:4px 4px 0 0;flex:none}
        .columns b{font-size:12px;font-weight:600;line-height:19px;min-height:19px}
        .columns small{font-size:11.5px;line-height:22px;white-space:nowrap;border-top:1px solid var(--soft)}
        .scroll{overflow-x:auto}
        table{border-collapse:collapse;width:100%}
        th{font-size:12.5px;font-weight:500;color:var(--soft);text-align:left;white-space:nowrap}
        th,td{padding:6px 14px 6px 0;border-bottom:1px solid var(--line);vertical-align:top}
        tr:last-child td{border-bottom:0}th:last-child,td:last-child{padding-right:0}
        td{overflow-wrap:anywhere}td b{font-weight:600;white-space:nowrap}
        td:first-child{min-width:110px}td.n:first-child{min-width:0}
        .n{text-align:right;white-space:nowrap}
        td small{display:block}
        .wide td:last-child{min-width:260px;width:55%}.wide td:not(:last-child){white-space:nowrap}
        .url{font-size:13.5px;overflow-wrap:anywhere;unicode-bidi:isolate}
        .bar{display:block;min-width:80px;height:9px;margin-top:7px;border-radius:5px;background:var(--track);overflow:hidden}
        .bar i{display:block;height:100%;border-radius:5px}
        section>.note:last-child{margin:14px 0 0}
        code{font:13px ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace;background:var(--track);padding:1px 5px;border-radius:4px}
        footer{padding-top:8px;padding-bottom:40px;font-size:13px}
        @media (max-width:980px){svg text{font-size:9.5px}}
        @media (max-width:760px){.tiles{grid-template-columns:1fr 1fr}.tile:last-child:nth-child(odd){grid-column:1/-1}}
        @media (max-width:560px){main,footer{padding:0 12px}section{padding:16px}.columns small{font-size:9px}.columns b{font-size:10px}
        svg text{font-size:17px}.b,.rows thead{display:none}th,td{padding-right:10px}.rows tr{display:block;border-bottom:1px solid
        var(--line);padding:8px 0}.rows tr:last-child{border:0}.rows td,.rows td:first-child{display:inline-block;border:0;padding:0 14px 2px
        0;min-width:0;text-align:left}.rows td.b{display:none}.wide td:last-child{display:block;width:auto;min-width:0}
        .host tr{display:flex;flex-wrap:wrap}.host td{flex:1 1 0}.rows.host td:first-child{flex:0 0 100%}
        .rows.host td{padding-right:6px}.rows.host td[data-h]::before{display:block;font-size:11px}.state{margin-left:0}
        .rows td[data-h]::before{content:attr(data-h) " ";color:var(--soft);font-size:12.5px}}
        @media print{:root{--page:#fff;--card:#fff;--text:#000;--soft:#444;--line:#ccc;--track:#eee;--bad:#b3261e;--good:#1a7f4b;--held:#8a5a00;
        --k1:#3b6fd8;--k2:#2a9d8f;--k3:#8fa7c9;--k4:#d9480f;--k5:#e8930c;--k6:#c2255c;--k7:#9c5bd1;--k8:#a08c72;--k9:#7a828d;--k10:#e58fb3}
        *{-webkit-print-color-adjust:exact;print-color-adjust:exact}
        body{font-size:11px}h1{font-size:22px}h2{font-size:14px}.url,.note,.facts,figcaption,code{font-size:10.5px}small,th,footer{font-size:9.5px}
        svg text{font-size:17px}.tile dt{font-size:10.5px}.state{font-size:10.5px;vertical-align:3px}
        main,footer{max-width:none;padding:0}header{padding-top:0}section{padding:12px 14px;margin:10px 0;
        -webkit-box-decoration-break:clone;box-decoration-break:clone}th,td{padding-top:3px;padding-bottom:3px}.note{break-after:avoid}
        td:first-child{min-width:0}
        .columns small,.columns b{font-size:9px}.bar{height:7px;margin-top:4px}
        .tiles{grid-template-columns:repeat(5,1fr)}.tile{padding:8px 12px}.tile dd{font-size:18px}
        .tile:last-child:nth-child(odd){grid-column:auto}section .tiles{grid-template-columns:repeat(4,1fr)}
        figure,tr,.tile,.stack,.legend li,h2{break-inside:avoid}h2{break-after:avoid}.scroll{overflow:visible}
        .two{grid-template-columns:1fr 1fr}.columns{height:150px}}

        """
}
