# The app on the CPU of any machine with Docker; docs/spaces.md says how to start it.
FROM python:3.12-slim

RUN useradd --create-home --uid 1000 dia && install -d -o dia /data
WORKDIR /home/dia/app

COPY requirements-cpu.txt requirements.txt constraints.txt ./
# Torch alone: PyTorch's own index need not have the tested versions of what torch depends on. Where
# it cannot be reached, the usual one brings torch's CUDA build: it works, and takes several gigabytes
# more.
RUN (pip install --no-cache-dir --no-deps -r requirements-cpu.txt -c constraints.txt --retries 1 \
     || echo "PyTorch's index cannot be reached, so torch comes as its CUDA build.") \
 && pip install --no-cache-dir -r requirements.txt -c constraints.txt

COPY . .
USER dia

# What is fetched, prepared and kept survives the container; temporary files do not.
ENV GRADIO_SERVER_NAME=0.0.0.0 \
    GRADIO_SERVER_PORT=7860 \
    HF_HOME=/data/hub \
    DIA_CACHE=/data/cache \
    DIA_KEPT=/data/kept
VOLUME /data
EXPOSE 7860
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ['GRADIO_SERVER_PORT'] + '/health', timeout=8)"]
CMD ["python", "app.py"]
