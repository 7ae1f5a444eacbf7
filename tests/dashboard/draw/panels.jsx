// SPDX-License-Identifier: LGPL-2.1-or-later
// Draws the panels of the dashboard with Grafana's own components: frames, values,
// graphs, tables, units, colours and legends. What is left out is the rest of Grafana:
// its menus, its queries, and the options of a panel that the dashboard does not use.
//
// window.DRAWN has the dashboard, the answers of Prometheus by panel, and the time range.
import React from 'react';
import { createRoot } from 'react-dom/client';
import 'uplot/dist/uPlot.min.css';
import {
  FieldColorModeId, FieldConfigOptionsRegistry, FieldType, ThemeContext, applyFieldOverrides,
  createTheme, dateTime, getDisplayProcessor, getFieldDisplayName, identityOverrideProcessor,
  standardEditorsRegistry, standardFieldConfigEditorRegistry, standardTransformers,
  standardTransformersRegistry, toDataFrame, transformDataFrame,
} from '@grafana/data';
import {
  BigValue, BigValueColorMode, BigValueGraphMode, GlobalStyles, PanelChrome, Table, TimeSeries,
} from '@grafana/ui';

const CELL = { height: 30, gap: 8 };
const theme = createTheme({ colors: { mode: 'light' } });

// Options of a field that the panels use, each as it stands in the dashboard.
const option = (id, isCustom) => ({
  id, path: id, name: id, isCustom, editor: () => null, override: () => null,
  process: identityOverrideProcessor, shouldApply: () => true, getItemsCount: () => 0,
});
const options = ['unit', 'min', 'max', 'decimals', 'displayName', 'color', 'thresholds']
  .map((id) => option(id, false));
const graphOptions = ['drawStyle', 'fillOpacity', 'lineWidth', 'showPoints', 'axisLabel',
  'axisPlacement', 'axisColorMode', 'axisGridShow', 'axisBorderShow', 'axisCenteredZero',
  'barAlignment', 'gradientMode', 'lineInterpolation', 'pointSize', 'scaleDistribution',
  'spanNulls', 'insertNulls', 'stacking', 'thresholdsStyle', 'hideFrom', 'lineStyle']
  .map((id) => option(id, true));
const fieldConfigRegistry = new FieldConfigOptionsRegistry(() => [...options, ...graphOptions]);
standardEditorsRegistry.setInit(() => []);
standardFieldConfigEditorRegistry.setInit(() => options);
standardTransformersRegistry.setInit(() => [
  { id: 'organize', name: 'organize', transformation: standardTransformers.organizeFieldsTransformer },
]);

// Grafana's defaults for a graph, where the dashboard says nothing.
const GRAPH = {
  axisPlacement: 'auto', axisColorMode: 'text', axisGridShow: true, axisBorderShow: false,
  axisCenteredZero: false, barAlignment: 0, drawStyle: 'line', fillOpacity: 0,
  gradientMode: 'none', hideFrom: { legend: false, tooltip: false, viz: false },
  insertNulls: false, lineInterpolation: 'linear', lineWidth: 1, pointSize: 5,
  scaleDistribution: { type: 'linear' }, showPoints: 'auto', spanNulls: false,
  stacking: { group: 'A', mode: 'none' }, thresholdsStyle: { mode: 'off' }, axisLabel: '',
};

const value = (text) => (text === 'NaN' ? null : Number(text));

function legend(format, labels) {
  return format.replace(/\{\{\s*(\w+)\s*\}\}/g, (_, name) => labels[name] ?? '').trim();
}

// A frame for each series, as Grafana's source for Prometheus makes it.
function series(panel, answers) {
  return answers.flatMap((rows, number) => rows.map((row) => toDataFrame({
    refId: panel.targets[number].refId,
    fields: [
      { name: 'Time', type: FieldType.time, values: row.values.map((pair) => pair[0] * 1000) },
      {
        name: 'Value', type: FieldType.number, labels: row.metric,
        values: row.values.map((pair) => value(pair[1])),
        config: { displayNameFromDS: legend(panel.targets[number].legendFormat, row.metric) },
      },
    ],
  })));
}

function rows(answers) {
  const found = answers.flat();
  const names = [...new Set(found.flatMap((row) => Object.keys(row.metric)))]
    .sort();
  return [toDataFrame({
    fields: [
      { name: 'Time', type: FieldType.time, values: found.map((row) => row.value[0] * 1000) },
      ...names.map((name) => ({
        name, type: FieldType.string, values: found.map((row) => row.metric[name] ?? ''),
      })),
      { name: 'Value', type: FieldType.number, values: found.map((row) => value(row.value[1])) },
    ],
  })];
}

function configured(panel, data) {
  const { defaults, overrides } = panel.fieldConfig;
  const isGraph = panel.type === 'timeseries';
  const color = { mode: isGraph ? FieldColorModeId.PaletteClassic : FieldColorModeId.Thresholds };
  const thresholds = { mode: 'absolute', steps: [{ value: -Infinity, color: 'green' }] };
  const steps = (defaults.thresholds ?? thresholds).steps
    .map((step) => ({ ...step, value: step.value ?? -Infinity }));
  return applyFieldOverrides({
    data, theme, timeZone: 'utc', replaceVariables: (text) => text, fieldConfigRegistry,
    fieldConfig: {
      overrides,
      defaults: {
        color, ...defaults, thresholds: { mode: 'absolute', steps },
        custom: isGraph ? { ...GRAPH, ...defaults.custom } : {},
      },
    },
  });
}

function Stat({ panel, answers, width, height }) {
  const data = configured(panel, rows(answers));
  const field = data[0].fields[data[0].fields.length - 1];
  if (!field.values.length) {
    return <BigValue value={{ text: 'No data', numeric: NaN }} theme={theme} width={width}
      height={height} />;
  }
  const display = getDisplayProcessor({ field, theme, timeZone: 'utc' });
  return <BigValue value={display(field.values[0])} theme={theme} width={width} height={height}
    colorMode={BigValueColorMode.Value} graphMode={BigValueGraphMode.None} />;
}

function Graph({ panel, answers, width, height }) {
  const [from, to] = window.DRAWN.range;
  const frames = configured(panel, series(panel, answers));
  frames.forEach((frame) => frame.fields.forEach((field) => getFieldDisplayName(field, frame, frames)));
  if (!frames.length) {
    return <div style={{ textAlign: 'center', paddingTop: height / 3 }}>No data</div>;
  }
  const timeRange = { from: dateTime(from), to: dateTime(to), raw: { from: dateTime(from), to: dateTime(to) } };
  return <TimeSeries frames={frames} timeRange={timeRange} timeZone="utc" width={width}
    height={height} legend={{ ...panel.options.legend, calcs: [] }} options={panel.options} />;
}

// Transformations answer later.
function Rows({ panel, answers, width, height }) {
  const [frames, setFrames] = React.useState(null);
  React.useEffect(() => {
    const context = { interpolate: (text) => text };
    const all = transformDataFrame(panel.transformations ?? [], rows(answers), context);
    const subscription = all.subscribe(setFrames);
    return () => subscription.unsubscribe();
  }, [panel, answers]);
  return frames && <Table data={configured(panel, frames)[0]} width={width} height={height} />;
}

const KINDS = { stat: Stat, timeseries: Graph, table: Rows };

function Dashboard() {
  const { dashboard, answers, width } = window.DRAWN;
  const column = width / 24;
  const step = CELL.height + CELL.gap;
  return dashboard.panels.map((panel) => {
    const { x, y, w, h } = panel.gridPos;
    const Kind = KINDS[panel.type];
    return (
      <div key={panel.id} style={{ position: 'absolute', left: x * column, top: y * step }}>
        <PanelChrome title={panel.title} description={panel.description}
          width={w * column - CELL.gap} height={h * step - CELL.gap}>
          {(innerWidth, innerHeight) => <Kind panel={panel} answers={answers[panel.id]}
            width={innerWidth} height={innerHeight} />}
        </PanelChrome>
      </div>
    );
  });
}

class Faults extends React.Component {
  componentDidCatch(error) {
    document.title = 'failed: ' + error.stack;
  }
  render() { return this.props.children; }
}

createRoot(document.getElementById('panels')).render(
  <Faults><ThemeContext.Provider value={theme}><GlobalStyles /><Dashboard /></ThemeContext.Provider></Faults>);
