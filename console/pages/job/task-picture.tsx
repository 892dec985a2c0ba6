/** The tasks of an execution as a picture, one cell or bar each. One of them is chosen with the pointer or with arrows. */
import { useEffect, useRef, useState } from "preact/hooks";
import { nextTask, stateAt, type TaskGrid, type TaskState } from "../../lib/task-grid.ts";
import { coloursOf } from "./colours.ts";

export interface Picture {
  widthPx: number;
  heightPx: number;
  /** The pixels of the canvas, as colours of 32 bits. */
  paint(pixels: Uint32Array, colours: Readonly<Record<TaskState, number>>, only: TaskState | null): void;
  taskAt(x: number, y: number): number | null;
  /** Where a task is, for the mark around it. */
  boxOf(task: number): { x: number; y: number; width: number; height: number };
  /** How far the arrows up and down go. */
  stride: number;
}

export interface TaskPictureProps {
  grid: TaskGrid;
  /** Others are faint. */
  only: TaskState | null;
  chosen: number | null;
  onChoose(task: number): void;
  pictureOf(grid: TaskGrid, roomPx: number): Picture;
  /** Below the picture. */
  axis?: readonly string[];
}

const ROOM_PX = 900;

export function TaskPicture({ grid, only, chosen, onChoose, pictureOf, axis }: TaskPictureProps) {
  const room = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [roomPx, setRoomPx] = useState(ROOM_PX);
  const [isDark, setDark] = useState(0);
  useEffect(() => {
    const sizes = new ResizeObserver(([entry]) => entry && setRoomPx(Math.floor(entry.contentRect.width)));
    if (room.current) sizes.observe(room.current);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const again = (): void => setDark((count) => count + 1);
    scheme.addEventListener("change", again);
    return () => {
      sizes.disconnect();
      scheme.removeEventListener("change", again);
    };
  }, []);
  const picture = pictureOf(grid, roomPx);
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context || !room.current) return;
    const image = context.createImageData(picture.widthPx, picture.heightPx);
    picture.paint(new Uint32Array(image.data.buffer), coloursOf(room.current), only);
    context.putImageData(image, 0, 0);
  }, [grid, only, roomPx, isDark, picture.heightPx]);
  const move = (event: KeyboardEvent): void => {
    const steps: Record<string, number> = {
      ...{ ArrowRight: 1, ArrowLeft: -1, ArrowDown: picture.stride, ArrowUp: -picture.stride },
      ...{ PageDown: 10 * picture.stride, PageUp: -10 * picture.stride, Home: -grid.total, End: grid.total },
    };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const from = chosen ?? (step > 0 ? -1 : grid.total);
    const clamped = Math.max(0, Math.min(grid.total - 1, from + step));
    const next = only === null ? clamped : nextTask(grid, from, step, only);
    if (next !== null) onChoose(next);
  };
  const mark = chosen === null ? null : picture.boxOf(chosen);
  return (
    <div
      class="task-picture"
      role="slider"
      tabIndex={0}
      aria-label="Task"
      aria-valuemin={0}
      aria-valuemax={Math.max(0, grid.total - 1)}
      aria-valuenow={chosen ?? 0}
      aria-valuetext={chosen === null ? "No task is chosen" : `Task ${chosen}, ${stateAt(grid, chosen)}`}
      onKeyDown={move}
    >
      <div class="room" ref={room}>
        <canvas
          ref={canvas}
          width={picture.widthPx}
          height={picture.heightPx}
          onClick={({ offsetX, offsetY }) => {
            const task = picture.taskAt(offsetX, offsetY);
            if (task !== null) onChoose(task);
          }}
          onMouseMove={(event) => {
            const task = picture.taskAt(event.offsetX, event.offsetY);
            event.currentTarget.title = task === null ? "" : `Task ${task}: ${stateAt(grid, task)}`;
          }}
        />
        {mark === null ? null : (
          <span
            class="task-mark"
            style={{ left: `${mark.x}px`, top: `${mark.y}px`, width: `${mark.width}px`, height: `${mark.height}px` }}
          />
        )}
      </div>
      {axis === undefined ? null : (
        <div class="axis">
          {axis.map((text) => (
            <span key={text}>{text}</span>
          ))}
        </div>
      )}
    </div>
  );
}
